package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// eventLoopBlocked: the main thread sleeps in a system call on something else than its clients, and serves nobody.
var eventLoopBlocked = Cause{
	ID:      "event-loop-blocked",
	Class:   ServerStall,
	Changes: []string{"loglevel", "logfile", "syslog-*"},
	Explain: explainLoopBlocked,
}

// otherCausesCalls are where other causes explain a blocked thread: a page is missing, also one that a system call
// copies from or to, or memory and processes are made.
var otherCausesCalls = facts.WordSet("page-fault read readv recvfrom recvmsg epoll_wait epoll_pwait madvise " +
	"mmap munmap mprotect mremap msync brk clone clone3 fork vfork execve exit exit_group futex")

// blockedElsewhere reports whether the main thread was blocked by what no other cause knows. Where the server has no
// append-only file, that may be another one.
func blockedElsewhere(n *facts.Node) func(account.Account, account.Segment) bool {
	aof := mainthread.AOF(n).Enabled
	return func(_ account.Account, s account.Segment) bool {
		call := mainthread.SyscallOf(s)
		return s.Actor == account.Server && s.State == account.Blocked && s.Suspect < 0 && call != "" &&
			call != mainthread.PageFault && !otherCausesCalls[call] &&
			!(mainthread.DiskSyscalls[call] && (aof || call == s.Culprit))
	}
}

func explainLoopBlocked(n *facts.Node) *Finding {
	elsewhere := blockedElsewhere(n)
	ns := map[string]int64{}
	cl := n.Claim(func(a account.Account, s account.Segment) bool {
		if !elsewhere(a, s) {
			return false
		}
		ns[s.Culprit] += s.Ns()
		return true
	})
	if !cl.Matters() {
		return nil
	}
	all := facts.KeysByValue(ns)
	worst := all[0]
	f := finding(n, cl)
	f.Title = "The event loop was blocked in " + format.Name(worst)
	for _, what := range all[:min(len(all), degree.Listed)] {
		f.support(mainthread.StateSource(n), float64(ns[what]), "ns",
			"the main thread slept in %s: %s of the slow calls' time", what, format.Brief(ns[what]))
	}
	f.supportWaiting(n, cl)
	f.FixSteps = loopBlockedFix(n, worst)
	return f
}

// loopBlockedFix: a standard output, a pipe or a device is where the server writes its log; a socket may be anything.
func loopBlockedFix(n *facts.Node, what string) (fix []remedy.Step) {
	_, log, isLog := strings.Cut(what, " to ")
	if !isLog || strings.HasPrefix(log, "a socket") {
		find := remedy.Step{
			ID: "find-what-it-waits-for", Kind: remedy.Change, Where: "the server's host",
			Text: "Find what the server waits for there: its stack in the kernel says so",
		}
		if pid := hosts.ServerPID(n); pid != 0 {
			find.Kind, find.Command = remedy.Command, fmt.Sprintf("cat /proc/%d/stack", pid)
		}
		return []remedy.Step{find}
	}
	if level, ok := n.Config("loglevel"); ok && (level == "debug" || level == "verbose") {
		fix = append(fix, remedy.ConfigSet(n, "log-less", "loglevel", "notice",
			"Log less: "+level+" has a line for each connection"))
	}
	_, reader, _ := strings.Cut(log, " that ")
	reader, known := strings.CutSuffix(reader, " reads")
	if !known {
		reader = "whoever reads it"
	}
	to := remedy.Step{
		ID: "log-to-a-file", Kind: remedy.Change, Restart: "the server",
		Text: "Let the server log to a file (logfile in redis.conf), which never waits for a reader; or let " +
			format.Name(reader) + " keep up",
	}
	if n.Ledger.IsProxy(n.Address) {
		to.ID, to.Restart = "read-the-log", ""
		to.Text = "Let " + format.Name(reader) + " keep up, or let the proxy log less"
	}
	return append(fix, to)
}
