package cause

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientLockWait: goroutines wait for a lock of their program before they call; or replies are there, and the threads
// that would read them wait for other threads of their process: the lock of an interpreter.
var clientLockWait = Cause{
	ID:      "client-lock-wait",
	Explain: explainClientLock,
}

func explainClientLock(n *facts.Node) *Finding {
	program, ns := explainProgramLock(n)
	if interpreter, more := explainInterpreterLock(n); more > ns {
		return interpreter
	}
	return program
}

// explainInterpreterLock finds threads that have a reply to read and wait for the lock of their interpreter. ns is what
// slow calls waited so.
func explainInterpreterLock(n *facts.Node) (f *Finding, ns int64) {
	l := caller.LateReadsOf(n, false, func(t *hosts.Threads, s account.Segment) int64 {
		if s.State != account.OffCPU || s.Culprit != recording.LockOfProcess ||
			hosts.InterpreterLock(n.Case, t.PID) == "" && hosts.HasSingleReader(n.Case, t.PID) {
			return 0
		}
		return max(0, s.Ns()-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
	})
	if l == nil {
		return nil, 0
	}
	f = finding(n, l.Claim)
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
		return f, l.Ns
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
		return f, l.Ns
	}
	f.FixSteps[0].Text = fmt.Sprintf("Move computations out of the threads that call: to processes of their own "+
		"(multiprocessing, more workers with fewer threads), or to code that releases the lock; "+
		"py-spy dump --pid %d shows which thread holds it", c.PID)
	return f, l.Ns
}

// explainProgramLock finds Go programs whose goroutines wait for a sync.Mutex or sync.RWMutex right before they call.
// While calls of the program are slow, or its cgroup is throttled, the holder may wait for that: then the lock is a
// consequence. ns is what slow calls waited so.
func explainProgramLock(n *facts.Node) (f *Finding, ns int64) {
	others := holderMayWait(n)
	waited, longest, holders := map[int]int64{}, map[int]int64{}, map[lockHolder]int{}
	l := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		pid := hosts.PIDOf(a.Call.Client)
		for _, s := range a.Segments {
			if s.State != account.LockWait {
				continue
			}
			if ns := s.Ns() - others[pid].OverlapNs(s.FromNs, s.ToNs); ns > 0 {
				times.Add(s, ns)
				holders[lockHolder{pid, s.Culprit}]++
			}
		}
		waited[pid] += times.Ns()
		longest[pid] = max(longest[pid], times.Ns())
		return times
	})
	if !l.Matters() {
		return nil, 0
	}
	worst := slices.MaxFunc(slices.Sorted(maps.Keys(waited)), func(a, b int) int {
		return cmp.Compare(waited[a], waited[b])
	})
	c := caller.CallerByPID(n, worst)
	f = finding(n, l)
	f.Title = "The goroutines of " + format.Name(c.Name) + " wait for a lock of the program before they call"
	of, times := mostOften(holders, worst)
	f.support(recording.SourceTap, float64(l.Calls), "calls", "before %s a goroutine slept in Lock or RLock of a "+
		"sync.Mutex or sync.RWMutex that another one held, for up to %s, and called as soon as it had it",
		ofSlow(l.Calls, n), format.Brief(longest[worst]))
	where := ""
	if of != "" {
		f.Title += "; " + format.Name(of) + " holds it"
		where = " in " + format.Name(of)
		f.support(recording.SourceTap, float64(times), "calls", "before %d of them the one that held it longest gave "+
			"it back in %s", times, format.Name(of))
	}
	f.FixSteps = []remedy.Step{
		inApplication("hold-lock-for-less", "Hold the lock for less time%s: nothing slow while it is held, or a lock "+
			"for each key", where),
	}
	return f, l.Ns
}

// lockHolder is a function of a process that gave a lock back; empty: that is not known.
type lockHolder struct {
	pid      int
	function string
}

// mostOften is the function that held the locks of a process before most of its calls that waited for them; empty:
// there is none.
func mostOften(holders map[lockHolder]int, pid int) (function string, times int) {
	all := 0
	for of, n := range holders {
		if of.pid != pid {
			continue
		}
		all += n
		if n > times || n == times && of.function < function {
			function, times = of.function, n
		}
	}
	if float64(times) < degree.Most*float64(all) {
		return "", 0
	}
	return function, times
}

// holderMayWait are the times in which one that holds a lock of a process may wait for something else: calls of the
// process were slow on the wire, or its cgroup was throttled.
func holderMayWait(n *facts.Node) map[int]facts.Spans {
	out := map[int]facts.Spans{}
	for pid, t := range hosts.ProcessThreads(n.Case) {
		out[pid] = slices.Clone(t.Throttled)
	}
	for _, a := range n.Ledger.Slow {
		if pid := hosts.PIDOf(a.Call.Client); pid != 0 && a.ExcessNs > a.Call.StartNs-a.Call.IntendedNs {
			out[pid] = append(out[pid], facts.Span{FromNs: a.Call.StartNs, ToNs: a.Call.EndNs})
		}
	}
	for pid := range out {
		out[pid] = facts.MergeSpans(out[pid])
	}
	return out
}
