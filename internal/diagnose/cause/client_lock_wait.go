package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientLockWait: replies are there, and the threads that would read them wait for other threads of their process: the
// lock of an interpreter.
var clientLockWait = Cause{
	ID:    "client-lock-wait",
	Title: "The client's threads wait for each other while their replies are in the sockets",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: the server is fine",
		T2: "calls with their reply in the socket while the thread that would read it slept in a futex, or of " +
			"CPython as soon as it had read it: it waited for another thread of its process",
	},
	Mechanism: "An interpreter runs one thread at a time (Python's GIL, Ruby's GVL). A thread that has its reply " +
		"waits until the one that computes gives the lock back.",
	RuledOut: "Replies that are read at once, or threads that wait for a CPU or for the one thread that reads",
	LookAlikes: []LookAlike{
		{"client-cpu-saturated", "there threads wait for a CPU; more CPUs help there, and not here"},
		{"client-eventloop-blocked", "there one thread reads all replies"},
		{"pool-exhausted-wait", "there threads wait for a connection, before they call"},
	},
	Remedy: "Computations in processes of their own, more processes with fewer threads each.",
	See: []string{
		"https://docs.python.org/3/glossary.html#term-global-interpreter-lock",
		"https://docs.ruby-lang.org/en/master/Thread.html",
	},
	Explain: explainClientLock,
}

func explainClientLock(n *facts.Node) *Finding {
	l := n.LateReads(false, func(t *facts.Threads, s account.Segment) int64 {
		if s.State != account.OffCPU || s.Culprit != recording.LockOfProcess ||
			n.InterpreterLock(t.PID) == "" && n.HasSingleReader(t.PID) {
			return 0
		}
		return max(0, s.Ns()-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	c := f.supportLateCalls(n, l, "while the threads that read them slept, waiting for another thread of the process")
	f.FixSteps = []remedy.Step{{
		ID: "compute-elsewhere", Kind: remedy.Change, Restart: "the application",
		Text: "Find the thread that holds the lock, and move its work to another process, or split it",
	}}
	runtime := n.InterpreterLock(c.PID)
	if runtime == "" {
		f.weaken(1)
		f.doubt(recording.SourceTap, 0, "", "which lock that is was not seen: a garbage collection that stops the "+
			"threads looks the same")
		return f
	}
	f.Title = fmt.Sprintf("The threads of %s wait for %s while their replies are in the sockets", format.Name(c.Name),
		facts.LockName(runtime))
	holder := func(s facts.CodeSample) bool { return s.HoldsLock }
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
