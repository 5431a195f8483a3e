package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolExhaustedWait: all connections of the pool are in use all the time, and calls wait inside the client before they
// are sent.
var poolExhaustedWait = Cause{
	ID:      "pool-exhausted-wait",
	Options: []remedy.Topic{remedy.LargerPool, remedy.PoolSizeOption},
	// Whatever makes calls long keeps connections in use.
	AfterClass: []Class{ServerStall},
	After: []string{
		"failover-window", "stale-topology-silent-master", "packet-loss-rto", "client-cfs-throttled",
		"client-cpu-saturated", "client-eventloop-blocked", "client-gc-pause", "blocking-cmd-on-shared-conn",
		"pool-test-on-borrow", "cmdinfo-once-lock", "pool-leak", "nagle-delayed-ack", "oversized-pipeline-or-multikey",
		"receiver-stall", "fanout-slowest-shard", "hidden-retries-backoff", "bandwidth-saturated",
	},
	Explain: explainPoolWait,
	Whole:   poolWaitSeen,
}

// overlaps calls in flight on a busy connection, and more, share it; a pool gives it to one caller at a time. On a
// connection that is busy for 43 % of the time, calls that come at random overlap so much.
// Bound: guess, 1.15 was seen of a pool; the pools of all libraries (slowpath lab matrix) would measure it.
const overlaps = 1.3

// mostBusy bounds a queue that would grow for ever.
// Bound: arithmetic, a guard of a division.
const mostBusy = 0.99

// waits is how many times a call's own time a caller waits for a connection, by Erlang's formula: calls come at random
// to as many connections as there are, each in use for the same share of the time.
func waits(u connection.PoolUse) float64 {
	busy := min(u.BusyShare, mostBusy) // a queue that grows for ever has no mean
	load := busy * float64(len(u.Used))
	b := 1.0
	for k := 1; k <= len(u.Used); k++ {
		b = load * b / (float64(k) + load*b)
	}
	c := b / (1 - busy*(1-b))
	return c / (float64(len(u.Used)) * (1 - busy))
}

// hadMore reports whether more connections than there are now had concurrent calls during the watch: the pool closed
// them, and may open more than these.
func hadMore(u connection.PoolUse) bool {
	used := caller.Caller{Conns: append(u.Caller.ConnsWhere((*caller.Conn).ClosedIdle), u.Used...)}
	return used.MaxConcurrent() > len(u.Used)
}

func explainPoolWait(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	if f := explainLibraryWaits(n, callers); f != nil {
		return f
	}
	if f := explainHandovers(n, callers); f != nil {
		return f
	}
	if d, ok := mainthread.DemandOf(n); ok && d.Total() >= facts.SaturatedDemand {
		return nil // with more connections calls would wait at the server instead
	}
	inFlight := overlap(n, callers)
	var worst connection.PoolUse
	var waiting float64 // seconds of waiting per second
	var mostLost, worstLonger float64
	for _, c := range callers {
		u, ok := connection.PoolUseOf(n, c)
		if _, seen := hosts.LibraryWaitsOf(n.Case, c.PID); !ok || seen { // and it hardly waits
			continue
		}
		each := float64(u.CallNs) / 1e9
		many := servesMany(n, u, inFlight)
		// A single connection that is always in use is a program that makes one call after the other, and a pool gives
		// one to one caller at a time. Callers that wait for less than a call takes lose more at the server.
		if len(u.Used) < 2 || hadMore(u) || waits(u) < 1 || mainthread.ClientTools[c.Comm] ||
			slowShare(n, c) >= minSlowShare || (inFlight > overlaps || connection.OneThreadEach(n, u)) && !many {
			continue
		}
		longer := waits(u)
		if many { // no more threads can wait than there are
			using := float64(len(u.Used)) * max(inFlight, 1)
			longer = min(longer, (float64(connection.ServedThreads(n, u))-using)/using)
		}
		lost := u.CallsPerSecond * each * longer
		waiting += lost
		if lost > mostLost {
			worst, worstLonger, mostLost = u, longer, lost
		}
	}
	if worst.Caller == nil {
		return nil
	}
	slow := n.InStateOf(account.App, account.PoolWait)
	f, waitNs := finding(n, slow), int64(float64(worst.CallNs)*worstLonger)
	f.Grade = Inferred
	f.lose(n, facts.LostWaiting, max(waiting*n.Seconds()*1e9-float64(slow.Ns), 0), waitNs)
	f.support(recording.SourceTap, worst.BusyShare, "of the time",
		"%s has %s, with a call in flight %.1f %% of the time, on the least used %.1f %%", worst.Name,
		counted(len(worst.Used), "connection"), worst.BusyShare*100, worst.MinBusyShare*100)
	f.support(recording.SourceTap, float64(worst.GapNs), "ns",
		"after a reply the next call was sent on the same connection within %s on average; a "+
			"call takes %s: the next one was already waiting", format.Brief(worst.GapNs), format.Brief(worst.CallNs))
	if fresh := len(worst.Opened()); fresh == 0 {
		f.support(recording.SourceTap, float64(len(worst.Used)), "connections",
			"it opened no other connection in %.0f s: its limit is %d", n.Seconds(), len(worst.Used))
	} else {
		f.doubt(recording.SourceTap, float64(fresh), "connections",
			"it opened %s during the watch: its pool may have room", counted(fresh, "connection"))
	}
	f.supportWaiters(n, worst, inFlight, waitNs)
	f.FixSteps = poolWaitFix(n, worst)
	return f
}

// servesMany reports whether the threads that read the replies of a pool serve so many others that most of these wait:
// of the calls that are in flight on a connection each may be another thread's. A connection that all threads share at
// any time is no pool: there few calls are sent right after a reply.
func servesMany(n *facts.Node, u connection.PoolUse, inFlight float64) bool {
	served, each := connection.ServedThreads(n, u), max(inFlight, 1)
	return served >= degree.Many && // an event loop wakes some threads of its own runtime, too
		degree.Most*float64(served) >= each*float64(len(u.Used)) && u.PromptShare*each >= degree.Most
}

// supportWaiters says how long calls wait, and whether threads were seen for which a pool works. Else workers may have
// connections of their own.
func (f *Finding) supportWaiters(n *facts.Node, u connection.PoolUse, inFlight float64, waitNs int64) {
	if !servesMany(n, u, inFlight) {
		f.support(recording.SourceTap, float64(waitNs), "ns",
			"at %s calls per second that come at random, such a pool makes them wait about %s before they are sent "+
				"(Erlang C)", format.Rounded(u.CallsPerSecond), format.Brief(waitNs))
		f.doubt(recording.SourceTap, 0, "", "as many workers as connections, each making one call after the other, "+
			"look the same: then no call waits. The pool's own counters show it: go-redis PoolStats().WaitCount, "+
			"redigo Stats().WaitCount, Jedis getNumWaiters()")
		return
	}
	f.Grade, f.Samples = Seen, int(u.CallsPerSecond*n.Seconds())
	served := connection.ServedThreads(n, u)
	f.support(recording.SourceTap, float64(served), "threads",
		"the replies on each connection were for at least %d threads in turn, which slept until then: so many wait "+
			"for each other, about %s before a call is sent", served, format.Brief(waitNs))
}

// overlap is how many calls are in flight on a busy connection: more than one where calls are pipelined or share it.
func overlap(n *facts.Node, callers []*caller.Caller) float64 {
	var ns int64
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		if h.Node == n.Address && strings.HasPrefix(h.Op, recording.Client+" ") {
			_, sum := connection.TotalOf(h.Sum)
			ns += sum
		}
	}
	var flight int64
	for _, c := range callers {
		flight += c.InFlightNs()
	}
	return float64(ns) / float64(max(flight, 1))
}

// slowShare is the share of a caller's time in flight that its slow calls took above their baseline, from when they
// were sent: what makes those slow keeps the connections in use, and more connections would not help.
func slowShare(n *facts.Node, c *caller.Caller) float64 {
	var ns int64
	for _, a := range n.Ledger.Slow {
		if c.PID != 0 && hosts.PIDOf(a.Call.Client) == c.PID {
			ns += max(0, a.ExcessNs-(a.Call.StartNs-a.Call.IntendedNs))
		}
	}
	return float64(ns) / float64(max(c.InFlightNs(), 1))
}

// poolWaitSeen adds the goroutines or threads that wait for a connection. They are the fact itself, and need no other
// evidence.
func poolWaitSeen(c *facts.Case, f *Finding) *Finding {
	w, ok := hosts.WorstWait(c, hosts.IsPoolWait)
	if !ok || w.Share < minPoolWaitShare {
		if f != nil && len(hosts.Applications(c)) > 0 && caller.CallersAreAmong(c, hosts.Applications(c)) {
			return nil // all callers were profiled, and none of them waits
		}
		return f
	}
	if f == nil {
		f = &Finding{Of: c.Ledger.Calls(), FixSteps: poolSeenFix(w)}
		f.loseInPool(c, w)
	}
	rest := f.Evidence
	f.Evidence, f.Against, f.Doubts = nil, nil, 0 // what spoke against it was that waiting is not seen from outside
	f.Grade = Counted
	f.supportWait(w)
	f.supportPoolTime(c, w)
	f.Evidence = append(f.Evidence, rest...)
	return f
}

// supportPoolTime says how long those wait.
func (f *Finding) supportPoolTime(c *facts.Case, w hosts.ThreadWait) {
	perSecond := usersPerSecond(c)
	if perSecond < 1 {
		return
	}
	ns, least := waitInPoolNs(c, w), ""
	if !caller.CallersAreAmong(c, []*hosts.Application{w.App}) {
		least = "at least "
	}
	f.support(recording.SourceProfile, float64(ns), "ns",
		"%s wait at a time on average, and the servers carry out %s commands per second: each waits %s%s "+
			"(Little's law)", format.Rounded(w.Mean), format.Rounded(perSecond), least, format.Brief(ns))
}

// queuesForConns reports whether the threads of a process queue for its connections: nearly each time another thread
// uses one, it had slept until the one before gave it back, and had waited longer than calls take, and long enough
// to be noticed. Where slow calls are what keeps the connections in use, more connections would not help.
func queuesForConns(n *facts.Node, h caller.Handovers) bool {
	return h.Handed >= degree.Many && h.MinShare >= degree.Part && h.WaitedNs/h.Handed >= h.InFlightNs/h.Calls &&
		n.LossNoticed(int64(h.WaitedNs/h.Handed), h.WaitedNs) &&
		slowShare(n, h.Caller)*float64(h.Caller.InFlightNs()) < minSlowShare*(h.InFlightNs+h.KeptNs)
}

// explainLibraryWaits finds Go programs whose goroutines wait in the pool of their client library for longer than their
// calls take, always or in slow calls.
func explainLibraryWaits(n *facts.Node, callers []*caller.Caller) *Finding {
	slow := n.InStateOf(account.App, account.PoolWait)
	var worst recording.LibraryWaits
	var of caller.Handovers
	var waited float64
	for _, c := range callers {
		w, ok := hosts.LibraryWaitsOf(n.Case, c.PID)
		if !ok {
			continue
		}
		always := w.WaitedNs >= w.CallsNs && n.LossNoticed(w.WaitedNs/w.Calls, float64(w.WaitedNs))
		if w.Longer < degree.Many || !always && !slow.Matters() || slowShare(n, c) >= minSlowShare {
			continue
		}
		waited += float64(w.WaitedNs)
		if w.WaitedNs > worst.WaitedNs {
			worst = w
			of, _ = caller.HandoversOf(n, c)
		}
	}
	if worst.WaitedNs == 0 {
		return nil
	}
	mean, atATime := worst.WaitedNs/worst.Calls, float64(worst.WaitedNs)/float64(worst.Ns)
	f := finding(n, slow)
	f.Samples = int(worst.Calls)
	f.lose(n, facts.LostWaiting, max(waited-float64(slow.Ns), 0), mean)
	f.support(recording.SourceTap, float64(mean), "ns",
		"%s has %s: its goroutines waited in the pool of their client library for %s on average before a call (at "+
			"most %s); a call takes %s", of.Name, counted(of.Conns, "connection"), format.Brief(mean),
		format.Brief(worst.WaitedMaxNs), format.Brief(worst.CallsNs/worst.Calls))
	f.support(recording.SourceTap, atATime, "goroutines", "%.1f of its goroutines waited for a connection at a time",
		atATime)
	f.FixSteps = append(largerPool(n, of.Caller, of.Conns+int(atATime)+1, "at least that many are needed at a time"),
		holdForLessTime)
	return f
}

// explainHandovers finds threads that wait for the connection of another one.
func explainHandovers(n *facts.Node, callers []*caller.Caller) *Finding {
	var worst caller.Handovers
	var waited float64
	slow := n.InStateOf(account.App, account.PoolWait)
	for _, c := range callers {
		h, ok := caller.HandoversOf(n, c)
		if !ok || !queuesForConns(n, h) || h.MinShare < degree.Most && !slow.Matters() {
			continue
		}
		waited += h.WaitedNs
		if h.WaitedNs > worst.WaitedNs {
			worst = h
		}
	}
	if worst.Caller == nil {
		return nil
	}
	mean, call := int64(worst.WaitedNs/worst.Handed), int64(worst.InFlightNs/worst.Calls)
	kept := int64(worst.KeptNs / worst.Handed)
	f := finding(n, slow)
	f.lose(n, facts.LostWaiting, max(waited-float64(slow.Ns), 0), mean)
	if worst.Conns == 1 {
		f.Title = "The threads of " + format.Name(worst.Name) + " share one connection: calls wait for it in the client"
	}
	f.support(recording.SourceTap, float64(mean), "ns",
		"%s has %s: threads that got one had slept for %s on average (at most %s), until the thread that used it "+
			"before woke them; a call takes %s", worst.Name, counted(worst.Conns, "connection"), format.Brief(mean),
		format.Brief(int64(worst.LongestNs)), format.Brief(call))
	f.support(recording.SourceTap, worst.Handed, "turns", "of %.0f times that another thread used a connection than "+
		"before, %.0f were such hand-overs", worst.Turns, worst.Handed)
	if worst.MinShare < degree.Most {
		f.weaken(2)
		f.doubt(recording.SourceTap, worst.MinShare, "of the turns",
			"the other turns found the connection free; where threads give each other work, they wake each other, too")
	}
	// by Little's law; a thread that was woken too late for the connection sleeps again, and only the last sleep counts
	f.support(recording.SourceTap, worst.WaitedNs/1e9/n.Seconds(), "threads",
		"at least %.1f of its threads waited for a connection at a time", worst.WaitedNs/1e9/n.Seconds())
	if code, known := hosts.HolderCode(n, worst.PID); known {
		f.support(recording.SourceProfile, float64(code.In), "samples", "in %d of %d samples meanwhile the thread "+
			"that gave it back was in %s", code.In, code.Samples, format.Name(code.Text()))
	}
	if kept > call {
		f.IndependentOf = []string{"pool-test-on-borrow"} // work keeps the connections in use, not calls
		f.support(recording.SourceTap, float64(kept), "ns",
			"a thread keeps its connection for %s after its last reply", format.Brief(kept))
		f.FixSteps = append(f.FixSteps, inApplication("return-before-other-work", "Give the connection back before "+
			"the other work: it is kept for %s after the last reply, and a call takes %s", format.Brief(kept),
			format.Brief(call)))
	}
	size := worst.Conns + int(worst.WaitedNs/1e9/n.Seconds()) + 1
	f.FixSteps = append(f.FixSteps, largerPool(n, worst.Caller, size, "at least that many are needed at a time")...)
	return f
}
