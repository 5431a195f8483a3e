package report

import (
	"strings"
	"unicode"

	"slowpath/internal/report/layout"
)

// step is a line of a fix: a command to copy, or a sentence.
type step struct {
	command bool
	text    string
}

// tools begin a command inside a sentence ("If it is stopped now: kill -CONT 17").
var tools = []string{
	"bpftrace ", "cat ", "chrt ", "docker ", "echo ", "ethtool ", "ip ", "kill ", "kubectl ", "mount ",
	"nft ", "perf ", "podman ",
	"redis-cli ", "renice ", "ss ", "sudo ", "swapoff ", "sysctl ", "systemctl ", "taskset ", "tc ", "valkey-cli ",
	"ACL SETUSER ", "CLIENT KILL ", "CLIENT UNPAUSE", "CLUSTER ", "CONFIG GET ", "CONFIG REWRITE", "CONFIG SET ",
	"MEMORY PURGE", "SCRIPT KILL", "FUNCTION KILL",
}

// joints are what comes in a sentence before a command.
var joints = []string{": ", ", or ", " or "}

// steps splits a fix into its sentences and its commands, so that each command has a line of its own. A fix is a
// command unless it begins as a sentence does.
func steps(fix string) []step {
	var out []step
	for fix = strings.TrimSpace(layout.Clean(fix)); fix != ""; {
		at, joint := nextTool(fix)
		if s := strings.TrimSpace(fix[:at]); s != "" {
			out = append(out, stepOf(s, joint))
		}
		if joint != "" && joint != ": " {
			out = append(out, step{text: "or"})
		}
		fix = strings.TrimSpace(fix[min(len(fix), at+len(joint)):])
	}
	return out
}

// nextTool finds the first joint that a command follows, and where it is. What a name of somebody else says in quotes
// (format.Name) is none.
func nextTool(s string) (at int, joint string) {
	quoted := false
	for i := range s {
		if s[i] == '\'' && (quoted || i == 0 || s[i-1] != '\\' && !isLetter(s[i-1])) { // no apostrophe
			quoted = !quoted
		}
		if quoted {
			continue
		}
		for _, j := range joints {
			if strings.HasPrefix(s[i:], j) && beginsTool(s[i+len(j):]) {
				return i, j
			}
		}
	}
	return len(s), ""
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

func beginsTool(s string) bool {
	for _, t := range tools {
		if strings.HasPrefix(s, t) {
			return true
		}
	}
	return false
}

func stepOf(s, joint string) step {
	if isSentence(s) {
		if joint == ": " {
			s += ":"
		}
		return step{text: s}
	}
	// "echo 0 > cgroup.freeze (v2)" cannot be pasted; the remark as a comment can.
	if i := strings.LastIndex(s, " ("); i > 0 && strings.HasSuffix(s, ")") && !strings.ContainsAny(s[i:], `'"`) {
		s = s[:i] + "   # " + s[i+2:len(s)-1]
	}
	return step{command: true, text: s}
}

// isSentence: it begins with a capital letter and is no command of the server, which are all capitals.
func isSentence(s string) bool {
	if beginsTool(s) {
		return false
	}
	for _, r := range s {
		return unicode.IsUpper(r)
	}
	return true
}
