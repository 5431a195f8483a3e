package cause

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientEventLoopBlocked: one thread reads all replies, and it is busy with something else: user code on the event
// loop.
var clientEventLoopBlocked = Cause{
	ID:      "client-eventloop-blocked",
	Options: []remedy.Topic{remedy.UnblockEventLoop},
	Explain: explainClientLoop,
}

func explainClientLoop(n *facts.Node) *Finding {
	l := caller.LateReadsOf(n, true, func(t *hosts.Threads, s account.Segment) int64 {
		if s.State == account.LoopWait {
			return s.Ns()
		}
		lock := s.Culprit == recording.LockOfProcess && hosts.InterpreterLock(n.Case, t.PID) != ""
		if !caller.IsReplyUnread(s) || lock || !hosts.HasSingleReader(n.Case, t.PID) || hosts.HasNoLoop(n.Case, t.PID) {
			return 0
		}
		return max(0, s.Ns()-t.Throttled.OverlapNs(s.FromNs, s.ToNs)-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	if waits := n.InStateOf(account.Client, account.LoopWait); waits.Ns*2 >= l.Ns {
		f.supportLoopWaits(n, l, waits)
		return f
	}
	f.loseUnsent(n, l)
	c := f.supportLateCalls(n, l, "while the one thread that reads them was busy with something else")
	if code, known := f.supportUnreadCode(n, c, "the event loop", isLoopOf(n, c)); known {
		f.Title = "The client's event loop is busy in " + code + " while its replies wait in the sockets"
	}
	onCPU := n.Claim(func(a account.Account, s account.Segment) bool {
		return s.Actor == account.Client && s.State == recording.Receive &&
			hosts.HasSingleReader(n.Case, hosts.PIDOf(a.Call.Client))
	})
	if onCPU.Ns*2 >= l.Ns {
		f.support(recording.SourceTap, float64(onCPU.Ns), "ns",
			"that thread was on the CPU for %s of that time: it computes", format.Brief(min(onCPU.Ns, l.Ns)))
	} else {
		f.support(recording.SourceTap, float64(l.Ns-onCPU.Ns), "ns",
			"that thread slept for %s of that time, but not for its sockets: a lock, a file or a blocking call",
			format.Brief(l.Ns-onCPU.Ns))
	}
	f.supportStalls(n, c)
	f.doubtCollector(n, c)
	f.FixSteps = loopFix(n, c)
	return f
}

// supportLoopWaits says for which thread callers waited, and where it was.
func (f *Finding) supportLoopWaits(n *facts.Node, l *caller.LateReads, waits facts.Claim) {
	ns := map[string]int64{}
	var waited facts.Spans
	n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.State == account.LoopWait {
			ns[s.Culprit] += s.Ns()
			waited = append(waited, facts.Span{FromNs: s.FromNs, ToNs: s.ToNs})
		}
		return false
	})
	where := facts.KeysByValue(ns)
	c := caller.CallerByPID(n, l.PIDs[0])
	loop, elsewhere, asleep := strings.Cut(where[0], recording.AsleepIn)
	f.Title = fmt.Sprintf("Callers wait for an event loop of their own process, which is elsewhere (%s)",
		format.Name(loop))
	f.support(recording.SourceTap, float64(waits.Calls), "calls",
		"the threads that made %s in %s slept until %s had sent the request and read the reply: up to %s in one call",
		ofSlow(waits.Calls, n), c.Name, format.Name(loop), format.Brief(waits.MaxNs))
	if asleep {
		f.support(recording.SourceTap, float64(ns[where[0]]), "ns",
			"for %s of that time %s was asleep in %s, and not for its sockets: %s", format.Brief(ns[where[0]]),
			format.Name(loop), format.Name(elsewhere), callbackSleeps(elsewhere))
	} else if code, known := f.supportCode(n, c, waited, "the event loop", isLoopOf(n, c)); known {
		f.Title = fmt.Sprintf("Callers wait for an event loop of their own process, which is busy in %s (%s)", code,
			format.Name(loop))
	} else {
		f.doubt(recording.SourceTap, float64(ns[where[0]]), "ns",
			"%s was not asleep elsewhere for most of that time: it computes, or waits for a CPU", format.Name(loop))
	}
	f.FixSteps = loopFix(n, c)
}

// isLoopOf tells the samples of event loops of a process, where these are known.
func isLoopOf(n *facts.Node, c *caller.Caller) func(hosts.CodeSample) bool {
	loops := hosts.LoopTIDs(n, c.PID)
	return func(s hosts.CodeSample) bool { return len(loops) == 0 || slices.Contains(loops, int(s.TID)) }
}

// callbackSleeps is what code in an event loop does in a system call.
func callbackSleeps(call string) string {
	switch name, _, _ := strings.Cut(call, " "); name {
	case "futex":
		return "a sleep, a lock, or a wait for another thread in a callback"
	case "nanosleep", "clock_nanosleep":
		return "a sleep in a callback"
	case "read", "recvfrom", "recvmsg", "write", "sendto", "sendmsg", "connect", "poll", "ppoll":
		return "a callback waits for something else than Redis"
	}
	return "a callback makes a blocking call"
}

// supportStalls counts the stalls of the loop: calls of several connections that waited at the same time.
func (f *Finding) supportStalls(n *facts.Node, c *caller.Caller) {
	if all, conns := caller.Unread(n, c.PID); len(all) > 0 {
		f.support(recording.SourceTap, float64(len(all)), "times",
			"it happened %s, %s on average, on %d of its connections", facts.TimesText(len(all)),
			format.Brief(all.TotalNs()/int64(len(all))), conns)
	}
}

// doubtCollector: seen from outside, a garbage collection that stops the program looks like a busy loop.
func (f *Finding) doubtCollector(n *facts.Node, c *caller.Caller) {
	t := hosts.ProcessThreads(n.Case)[c.PID]
	switch {
	case t != nil && len(t.Collecting) > 0:
		f.support(recording.SourceTap, float64(len(t.Collecting)), "collections",
			"not garbage collection: those of this process took another %s", format.Brief(t.Collecting.TotalNs()))
	case hosts.ReportsCollections(n.Case, c.PID):
		f.support(recording.SourceTap, 0, "collections", "its runtime reports collections, and had no long one")
	default:
		f.doubt(recording.SourceTap, 0, "",
			"a garbage collection that stops the program looks the same, and this runtime does not report them")
	}
}

// loopFix is for the runtime of the caller, or for all where no name of it tells.
func loopFix(n *facts.Node, c *caller.Caller) (fix []remedy.Step) {
	runtimes := []string{"python", "node", "java", "ruby"}
	shows := map[string]string{
		"python": fmt.Sprintf("py-spy dump --pid %d", c.PID),
		"node":   "node --cpu-prof",
		"java":   fmt.Sprintf("jstack %d", c.PID),
		"ruby":   fmt.Sprintf("rbspy dump --pid %d", c.PID),
	}
	if i := slices.IndexFunc(runtimes, func(r string) bool {
		return strings.HasPrefix(c.Comm, r) || strings.HasPrefix(hosts.Programs(n.Case)[c.PID].Comm, r) ||
			hosts.InterpreterLock(n.Case, c.PID) == r
	}); i >= 0 {
		runtimes = runtimes[i : i+1]
	}
	for _, runtime := range runtimes {
		if s, ok := remedy.StepOf(remedy.UnblockEventLoop, runtime); ok {
			s.Or = len(fix) > 0
			s.Text += ". " + shows[runtime] + " shows what holds the loop"
			fix = append(fix, s)
		}
	}
	return fix
}
