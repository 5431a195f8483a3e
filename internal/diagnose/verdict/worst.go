package verdict

import (
	"slices"
	"sort"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
)

// stall is with whom a slow call waited longest: with a server, a client or a connection. Calls that waited with the
// same one at the same time, such as 40 behind one KEYS, are one stall, whatever the states of their accounts: of two
// calls that a client reads late one may find its thread asleep, the other in the run queue.
type stall struct {
	with         string
	fromNs, toNs int64 // from the beginning of the first such segment to the end of the last
}

// worst are the slowest calls, one of each stall.
func worst(l *account.Ledger) []Worst {
	slow := make([]int, 0, len(l.Slow))
	for i, a := range l.Slow {
		if !a.IsPart() {
			slow = append(slow, i)
		}
	}
	sort.SliceStable(slow, func(i, j int) bool { return l.Slow[slow[i]].FeltNs() > l.Slow[slow[j]].FeltNs() })
	out, shown := []Worst{}, []stall{}
	for _, i := range slow {
		a, whole := l.Slow[i], l.Whole(i)
		s := stallOf(a, whole)
		if i := slices.IndexFunc(shown, s.same); i >= 0 {
			out[i].SameStall++
		} else if len(out) < degree.Listed {
			out, shown = append(out, worstOf(a, whole)), append(shown, s)
		}
	}
	return out
}

func worstOf(a account.Account, whole []account.HopSegment) Worst {
	w := Worst{
		Time: time.Unix(0, a.Call.IntendedNs).UTC(), Source: a.Call.Source, Conn: a.Call.Conn, Client: a.Call.Client,
		Op: a.Call.Op, Node: a.Call.Node, Ns: a.DurationNs(), OwnDelayNs: a.OwnDelayNs, Segments: []Part{},
	}
	for _, s := range whole {
		p := Part{
			Actor: s.Actor, State: s.State, FromNs: s.FromNs - a.Call.IntendedNs, ToNs: s.ToNs - a.Call.IntendedNs,
			Culprit: s.Culprit,
		}
		if s.Node != a.Call.Node {
			p.Node = s.Node
		}
		w.Segments = append(w.Segments, p)
	}
	return w
}

// stallOf is with whom the call waited longest.
func stallOf(a account.Account, whole []account.HopSegment) stall {
	waits, ns := []stall{}, []int64{}
	longest := -1
	for _, s := range whole {
		if a.Call.Source == recording.SourceProbe && s.Actor == account.Client && s.State == account.RunQueue {
			continue // slowpath's own delay counts in no latency
		}
		with := waitedWith(a, s)
		i := slices.IndexFunc(waits, func(w stall) bool { return w.with == with })
		if i < 0 {
			i, waits, ns = len(waits), append(waits, stall{with: with, fromNs: s.FromNs}), append(ns, 0)
		}
		waits[i].toNs = s.ToNs
		ns[i] += s.Ns()
		if longest < 0 || ns[i] > ns[longest] {
			longest = i
		}
	}
	if longest < 0 {
		return stall{}
	}
	return waits[longest]
}

// waitedWith is who kept a call waiting in a segment. A server keeps all waiting that call it, a client all that it
// made; the network, a reply that is taken slowly, and its own work concern the calls of one connection.
func waitedWith(a account.Account, s account.HopSegment) string {
	ofConn := s.Node + " " + a.Call.Source + " " + a.Call.Conn
	switch s.Actor {
	case account.Server, recording.Proxy:
		if s.State == account.Send || s.State == account.Exec && s.Culprit == "" {
			return ofConn
		}
		return s.Node
	case account.Client:
		if a.Call.Client != "" {
			return a.Call.Client
		}
	case account.Nobody:
		return s.Node + " " + s.State
	}
	return ofConn
}

// same reports whether two calls waited with the same one, and at least half of the shorter wait was common: a client
// may send its next call, which waits for the next KEYS, before the last reply of the first stall is sent.
func (s stall) same(o stall) bool {
	common := min(s.toNs, o.toNs) - max(s.fromNs, o.fromNs)
	shorter := min(s.toNs-s.fromNs, o.toNs-o.fromNs)
	return s.with == o.with && common > 0 && common >= shorter-common
}
