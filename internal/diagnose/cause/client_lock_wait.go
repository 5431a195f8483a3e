package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientLockWait: replies are there, and the threads that would read them wait for other threads of their process: the
// lock of an interpreter.
var clientLockWait = Cause{
	ID:      "client-lock-wait",
	Explain: explainClientLock,
}

func explainClientLock(n *facts.Node) *Finding {
	l := caller.LateReadsOf(n, false, func(t *hosts.Threads, s account.Segment) int64 {
		if s.State != account.OffCPU || s.Culprit != recording.LockOfProcess ||
			hosts.InterpreterLock(n.Case, t.PID) == "" && hosts.HasSingleReader(n.Case, t.PID) {
			return 0
		}
		return max(0, s.Ns()-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	c := f.supportLateCalls(n, l, "while the threads that read them slept, waiting for another thread of the process")
	f.FixSteps = []remedy.Step{
		inApplication("compute-elsewhere", "Find the thread that holds the lock, and move its work to another "+
			"process, or split it"),
	}
	runtime := hosts.InterpreterLock(n.Case, c.PID)
	if runtime == "" {
		f.weaken(1)
		f.doubt(recording.SourceTap, 0, "", "which lock that is was not seen: a garbage collection that stops the "+
			"threads looks the same")
		return f
	}
	f.Title = fmt.Sprintf("The threads of %s wait for %s while their replies are in the sockets", format.Name(c.Name),
		hosts.LockName(runtime))
	holder := func(s hosts.CodeSample) bool { return s.HoldsLock }
	if code, known := f.supportUnreadCode(n, c, "the thread with the lock", holder); known {
		f.Title += "; " + code + " holds it"
	}
	f.See = []string{"https://docs.python.org/3/glossary.html#term-global-interpreter-lock"}
	if runtime == recording.ProfileRuby {
		f.See = []string{"https://docs.ruby-lang.org/en/master/Thread.html"}
		f.FixSteps[0].ID = "compute-in-processes"
		f.FixSteps[0].Text = fmt.Sprintf("Move computations out of the threads that call: to processes of their own "+
			"(Puma: more workers with fewer threads; Sidekiq: another process for those jobs) or a Ractor; "+
			"rbspy dump --pid %d shows what its threads run", c.PID)
		return f
	}
	f.FixSteps[0].Text = fmt.Sprintf("Move computations out of the threads that call: to processes of their own "+
		"(multiprocessing, more workers with fewer threads), or to code that releases the lock; "+
		"py-spy dump --pid %d shows which thread holds it", c.PID)
	return f
}
