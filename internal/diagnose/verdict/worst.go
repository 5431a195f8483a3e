package verdict

import (
	"slices"
	"sort"
	"time"

	"slowpath/internal/diagnose/account"
)

// worstCalls is how many of the slowest calls a diagnosis shows.
// Bound: arithmetic, the size of a list.
const worstCalls = 3

// stall is what a slow call waited for longest: calls that waited for the same at the same time, such as 40 behind one
// KEYS, are one stall.
type stall struct {
	node, actor, state, culprit, caller string
	fromNs, toNs                        int64 // from the beginning of the first such segment to the end of the last
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
		} else if len(out) < worstCalls {
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

// stallOf is what the call waited for longest. A command and the calls that wait for it are in one stall.
func stallOf(a account.Account, whole []account.HopSegment) stall {
	type wait struct {
		stall
		ns int64
	}
	var waits []wait
	longest := -1
	for _, s := range whole {
		of := stall{node: s.Node, actor: s.Actor, state: s.State, culprit: s.Culprit, caller: ownOf(a, s.Segment)}
		if of.actor == account.Server && of.state == account.Exec && of.culprit != "" {
			of.state = account.Busy
		}
		i := slices.IndexFunc(waits, func(w wait) bool { return w.sameReason(of) })
		if i < 0 {
			of.fromNs = s.FromNs
			i, waits = len(waits), append(waits, wait{stall: of})
		}
		waits[i].toNs = s.ToNs
		waits[i].ns += s.Ns()
		if longest < 0 || waits[i].ns > waits[longest].ns {
			longest = i
		}
	}
	if longest < 0 {
		return stall{}
	}
	return waits[longest].stall
}

// ownOf keeps apart what happens to one caller alone: what its own process or its connection waits for.
func ownOf(a account.Account, s account.Segment) string {
	switch {
	case s.Actor == account.Client && a.Call.Client != "":
		return a.Call.Client
	case s.Actor == account.Client, s.Actor == account.Network, s.Actor == account.Server && s.State == account.Exec &&
		s.Culprit == "":
		return a.Call.Conn
	}
	return ""
}

// same reports whether two calls waited for the same, and at least half of the shorter wait was common: a client may
// send its next call, which waits for the next KEYS, before the last reply of the first stall is sent.
func (s stall) same(o stall) bool {
	common := min(s.toNs, o.toNs) - max(s.fromNs, o.fromNs)
	shorter := min(s.toNs-s.fromNs, o.toNs-o.fromNs)
	return s.sameReason(o) && common > 0 && common >= shorter-common
}

func (s stall) sameReason(o stall) bool {
	s.fromNs, s.toNs, o.fromNs, o.toNs = 0, 0, 0, 0
	return s == o
}
