package caller

import (
	"cmp"
	"maps"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// LateReads is what a cause explains of the time between replies and their reads, and of which processes.
type LateReads struct {
	facts.Claim
	// PIDs are the processes, those with the most time first.
	PIDs []int
	// UnsentNs is about how long calls waited in these processes before they were sent, in nanoseconds, all together: a
	// process that does not read makes no calls either.
	UnsentNs float64
	ns       map[int]int64
}

// unreadReply is a time in which a process did not read a reply that had arrived on a connection.
type unreadReply struct {
	facts.Span
	conn string
}

// LateReadsOf claims time of slow calls at their client's end, of which of gives the nanoseconds for one segment. It is
// nil where that was too rare for a pattern (HealthyMinCalls, HealthyMaxNs, HealthyMaxShare). whole says that all
// threads of a process wait at the same time; else only those with a single reader do.
func LateReadsOf(n *facts.Node, whole bool, of func(*hosts.Threads, account.Segment) int64) *LateReads {
	all := hosts.ProcessThreads(n.Case)
	l := &LateReads{ns: map[int]int64{}}
	calls, waited, unread := map[int]int64{}, map[int]facts.Spans{}, map[int][]unreadReply{}
	l.Claim = n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		pid := hosts.PIDOf(a.Call.Client)
		if pid == 0 {
			return nil
		}
		t := cmp.Or(all[pid], &hosts.Threads{PID: pid})
		for _, s := range a.Segments {
			if s.Actor != account.Client {
				continue
			}
			part := of(t, s)
			times.Add(s, part)
			if part > 0 && (whole || hosts.HasSingleReader(n.Case, pid)) {
				late := facts.Span{FromNs: s.ToNs - part, ToNs: s.ToNs}
				waited[pid] = append(waited[pid], late)
				unread[pid] = append(unread[pid], unreadReply{late, a.Call.Conn})
			}
		}
		if ns := times.Ns(); float64(ns) >= degree.Part*float64(a.ExcessNs) && ns > 0 {
			calls[pid]++
			l.ns[pid] += ns
		}
		return times
	})
	l.PIDs = slices.SortedFunc(maps.Keys(l.ns), func(a, b int) int {
		return cmp.Or(cmp.Compare(l.ns[b], l.ns[a]), cmp.Compare(a, b))
	})
	if l.Calls < facts.HealthyMinCalls || l.MaxNs < facts.HealthyMaxNs && !often(n, calls, waited) &&
		float64(l.Users.Calls) <= facts.HealthyMaxShare*float64(l.Users.AllCalls) {
		return nil
	}
	for _, c := range Callers(n) {
		l.UnsentNs += unsentNs(n, c, unread[c.PID])
	}
	return l
}

// UnsentNs is about how long calls of a process waited before they were sent, in nanoseconds, if it stood still at some
// times and none of its replies waited meanwhile.
func UnsentNs(n *facts.Node, c *Caller, still facts.Spans) float64 {
	unread := make([]unreadReply, len(still))
	for i, s := range still {
		unread[i].Span = s
	}
	return unsentNs(n, c, unread)
}

// unsentNs is about how long calls of a process waited before they were sent, in nanoseconds: in each time without a
// read as many as it makes in such a time, one on each connection at most that has no call in flight, for half of it.
func unsentNs(n *facts.Node, c *Caller, unread []unreadReply) (ns float64) {
	if len(unread) == 0 {
		return 0
	}
	var all facts.Spans
	for _, s := range unread {
		all = append(all, s.Span)
	}
	all = facts.MergeSpans(all)
	used := 0
	for _, k := range c.Conns {
		if k.Calls > 1 && k.CloseNs == 0 {
			used++
		}
	}
	rate := float64(c.AppCalls()) / max(n.Seconds()*1e9-float64(all.TotalNs()), 1)
	for _, whole := range all {
		inFlight := map[string]bool{}
		for _, s := range unread {
			if s.FromNs < whole.ToNs && s.ToNs > whole.FromNs && s.conn != "" {
				inFlight[s.conn] = true
			}
		}
		long := float64(whole.ToNs - whole.FromNs)
		ns += min(rate*long, float64(max(used-len(inFlight), 0))) * long / 2
	}
	return ns
}

// often reports whether the late calls of a process are more than what a healthy one may have (HealthyMaxShare), or
// whether it waited~still for so long: what it wanted to call meanwhile was not even sent, and was delayed with them.
func often(n *facts.Node, late map[int]int64, waited map[int]facts.Spans) bool {
	for _, s := range waited {
		if float64(facts.MergeSpans(s).TotalNs()) > facts.HealthyMaxShare*n.Seconds()*1e9 {
			return true
		}
	}
	for _, c := range Callers(n) {
		if k := late[c.PID]; k > 0 && float64(k) > facts.HealthyMaxShare*float64(c.AppCalls()) {
			return true
		}
	}
	return false
}

// IsReplyUnread reports whether a segment says only that a reply has arrived and is not read, with no wait known of the
// thread that read it: in a runtime that moves work between threads (Go, the JVM's pools) that thread was not the one
// to wait for.
func IsReplyUnread(s account.Segment) bool {
	return s.State == recording.Receive || s.State == recording.OffCPU
}

// Unread is when replies to slow calls of a process were in their sockets, unread, and on how many connections.
func Unread(n *facts.Node, pid int) (all facts.Spans, conns int) {
	seen := map[string]bool{}
	for _, a := range n.Ledger.Slow {
		if hosts.PIDOf(a.Call.Client) != pid {
			continue
		}
		for _, s := range a.Segments {
			if s.Actor == account.Client && IsReplyUnread(s) {
				all = append(all, facts.Span{FromNs: s.FromNs, ToNs: s.ToNs})
				seen[a.Call.Conn] = true
			}
		}
	}
	return facts.MergeSpans(all), len(seen)
}

// ThrottledUnreadNs is the throttled part in nanoseconds of a segment between a reply and its read.
func ThrottledUnreadNs(t *hosts.Threads, s account.Segment) int64 {
	switch {
	case s.State == account.Throttled:
		return s.Ns()
	case IsReplyUnread(s):
		return t.Throttled.OverlapNs(s.FromNs, s.ToNs)
	}
	return 0
}

// SlowConnCount is how many connections of a process had slow calls.
func SlowConnCount(n *facts.Node, pid int) int {
	conns := map[string]bool{}
	for _, a := range n.Ledger.Slow {
		if hosts.PIDOf(a.Call.Client) == pid {
			conns[a.Call.Conn] = true
		}
	}
	return len(conns)
}
