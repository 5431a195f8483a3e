package server

import (
	"strconv"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// logEntry is an entry of SLOWLOG, or of a log of COMMANDLOG, without the arguments.
type logEntry struct {
	id           int64
	second       int64 // Unix time of the server's clock at the end of the command, in whole seconds
	amount       int64 // microseconds; of large requests and replies, bytes
	command      string
	argCount     int    // with the command itself
	argBytes     int64  // of all arguments, with the command itself
	client, name string // since 4.0
	framework    string // whose keys it is about, by their form
	key          string // the first argument, but a subcommand: it stays in memory
}

// Bounds on what an entry may claim.
const (
	maxArgCount = 1 << 30
	maxArgBytes = 1 << 40
	maxSeconds  = 1 << 33 // the year 2242
)

// parseLog reads the reply to SLOWLOG GET or COMMANDLOG GET, newest entry first: [id, time, amount, args] before 4.0,
// with client address and name since. Malformed entries are skipped.
func parseLog(v resp.Value) []logEntry {
	var out []logEntry
	for _, e := range v.Elems {
		if len(e.Elems) < 4 {
			continue
		}
		id, ok1 := e.Elems[0].Integer()
		second, ok2 := e.Elems[1].Integer()
		amount, ok3 := e.Elems[2].Integer()
		if !ok1 || !ok2 || !ok3 || id < 0 || second < 0 || second > maxSeconds || amount < 0 ||
			amount > maxSeconds*1e6 {
			continue
		}
		entry := logEntry{id: id, second: second, amount: min(amount, 1<<62/1000)}
		entry.readArgs(e.Elems[3].Elems)
		if len(e.Elems) >= 6 {
			entry.client, entry.name = clip(e.Elems[4].Text()), clip(e.Elems[5].Text())
		}
		out = append(out, entry)
	}
	return out
}

func (e *logEntry) readArgs(args []resp.Value) {
	for i, a := range args {
		text := a.Text()
		if n, ok := suffixNumber(text, "... (", " more arguments)"); ok && i > 0 && i == len(args)-1 &&
			strings.HasPrefix(text, "... (") {
			e.argCount = int(min(int64(e.argCount)+n, maxArgCount))
			continue
		}
		e.argCount++
		e.argBytes = min(e.argBytes+argLength(text), maxArgBytes)
	}
	var words [2]string
	for i := range min(len(args), len(words)) {
		words[i] = args[i].Text()
	}
	e.command = commandName(words[0], words[1])
	e.framework = frameworkOf(e.command, args)
	if !containers[recording.CommandName(words[0])] {
		e.key = words[1]
	}
}

// argLength is the length of an argument that SLOWLOG may have cut at 128 bytes, leaving "… (N more bytes)".
func argLength(text string) int64 {
	if n, ok := suffixNumber(text, "... (", " more bytes)"); ok {
		return min(int64(strings.LastIndex(text, "... ("))+n, maxArgBytes)
	}
	return int64(len(text))
}

// suffixNumber reads the number between before and after at the end of a text.
func suffixNumber(text, before, after string) (int64, bool) {
	head, ok := strings.CutSuffix(text, after)
	i := strings.LastIndex(head, before)
	if !ok || i < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(head[i+len(before):], 10, 40)
	return int64(n), err == nil
}

// containers are the commands whose first argument is a subcommand, and no user's data.
var containers = map[string]bool{
	"ACL": true, "CLIENT": true, "CLUSTER": true, "COMMAND": true, "COMMANDLOG": true,
	"CONFIG": true, "DEBUG": true,
	"FUNCTION": true, "LATENCY": true, "MEMORY": true, "MODULE": true, "OBJECT": true, "PUBSUB": true, "SCRIPT": true,
	"SLOWLOG": true,
	"XGROUP":  true, "XINFO": true,
}

// commandName is the command in capitals, with its subcommand where it has one. What is no name of a command is not
// recorded: it could be data, or a name that was to be kept secret.
func commandName(command, sub string) string {
	name := recording.CommandName(command)
	if s := recording.SubcommandName(sub); containers[name] && s != "" {
		return name + " " + s
	}
	return name
}

// clip bounds a text that the server gave.
func clip(s string) string { return s[:min(len(s), maxTextBytes)] }
