// Package account says where the time of each slow call went: it partitions a call into segments, each an actor in a
// state, that are disjoint and add up to the call exactly. What no source saw stays unexplained.
//
// It is a pure function of a recording. It knows states and culprits, not causes.
package account

import (
	"sort"

	"slowpath/internal/recording"
)

// Actors and states, by the names that the rest of this package and the causes use.
const (
	App         = recording.App
	Client      = recording.Client
	Network     = recording.Network
	Server      = recording.Server
	Nobody      = recording.Nobody
	PoolWait    = recording.PoolWait
	Dial        = recording.Dial
	TLS         = recording.TLS
	Handshake   = recording.Handshake
	RunQueue    = recording.RunQueue
	Out         = recording.Out
	Back        = recording.Back
	Retransmit  = recording.Retransmit
	Throttled   = recording.Throttled
	Frozen      = recording.Frozen
	Busy        = recording.Busy
	Blocked     = recording.Blocked
	Exec        = recording.Exec
	Withheld    = recording.Withheld
	Send        = recording.Send
	Receive     = recording.Receive
	OffCPU      = recording.OffCPU
	Unexplained = recording.Unexplained
)

// Segment is a part of a call's time. Suspect is the index in Ledger.Suspects of what it waited for, -1 where unknown.
type Segment struct {
	Actor   string
	State   string
	FromNs  int64
	ToNs    int64
	Culprit string
	Suspect int
}

// Ns is the length of the segment.
func (s Segment) Ns() int64 { return s.ToNs - s.FromNs }

// Account is one slow call and the partition of its time.
type Account struct {
	Call     recording.Call
	UsualNs  int64 // what a call of this command on this path usually takes
	ExcessNs int64
	// Weight is by how much its time counts in shares: 1 where only the probe called; see weigh.
	Weight   float64
	Segments []Segment // ordered, disjoint, from Call.IntendedNs to Call.EndNs
	together float64   // part of the time that its connection waited for it and for those with it
}

// DurationNs is the call's time as its caller felt it: from the moment it was meant to be sent.
func (a Account) DurationNs() int64 { return a.Call.EndNs - a.Call.IntendedNs }

// In is the time spent in a state, in nanoseconds.
func (a Account) In(actor, state string) int64 {
	var ns int64
	for _, s := range a.Segments {
		if s.Actor == actor && s.State == state {
			ns += s.Ns()
		}
	}
	return ns
}

// Total is the time of all slow calls in one state.
type Total struct {
	Actor string
	State string
	Ns    int64
	Share float64 // of the time of all slow calls
}

// Ledger is the accounts of all slow calls of a recording.
type Ledger struct {
	ThresholdNs int64
	Latency     Latency
	Paths       []Path
	Slow        []Account // ordered by time
	Suspects    []Suspect
	ExcessNs    int64 // weighted sum over Slow
	// Users are the calls of the server's users, which the kernel source sees; Probe those of slowpath, and what the
	// server logged.
	Users, Probe Callers
	ops          ops
	lines        map[string][]Segment // see Exact
}

// Build makes the accounts of a recording.
func Build(rec *recording.Recording) *Ledger {
	l := &Ledger{Paths: paths(rec), ops: readOps(rec)}
	l.ThresholdNs = threshold(rec, l)
	l.Latency = latency(rec, l)
	nodes := tappedNodes(rec)
	l.Suspects = suspects(rec, nodes)
	p := newPainter(rec, l, nodes)
	twice := newTwins(rec)
	for _, c := range rec.Calls {
		ns := felt(rec, c)
		if ns < l.ThresholdNs || twice.has(c) {
			continue
		}
		if usual := l.usual(c); ns > usual {
			l.add(p.paint(c, usual, ns-usual))
		}
	}
	for i, s := range l.Suspects {
		if s.Own && !s.Merged && s.DurationNs >= l.ThresholdNs && (s.Busy || !s.Stopped) && !twice.saw(s) {
			l.add(ownCall(s, i))
		}
	}
	sort.SliceStable(l.Slow, func(i, j int) bool { return l.Slow[i].Call.IntendedNs < l.Slow[j].Call.IntendedNs })
	l.weigh(rec)
	return l
}

func (l *Ledger) add(a Account) {
	l.Slow = append(l.Slow, a)
}

// ownCall is the account of a command that the server itself logged as slow: its whole time is its own execution.
func ownCall(s Suspect, index int) Account {
	end := s.ToNs
	c := recording.Call{
		Source: recording.SourceServer, Conn: s.Client, Op: s.Command, ArgCount: s.ArgCount,
		Node: s.Node, Slot: -1,
		IntendedNs: end - s.DurationNs, StartNs: end - s.DurationNs, EndNs: end,
	}
	return Account{
		Call: c, ExcessNs: s.DurationNs,
		Segments: []Segment{{Server, Exec, c.IntendedNs, end, s.Text, index}},
	}
}

// Totals adds up the segments of all slow calls, largest first. Calls that were under way on one connection at the same
// time share it.
func (l *Ledger) Totals() []Total {
	type key struct{ actor, state string }
	sums := map[key]float64{}
	var all float64
	for _, a := range l.Slow {
		for _, s := range a.Segments {
			ns := float64(s.Ns()) * a.together
			sums[key{s.Actor, s.State}] += ns
			all += ns
		}
	}
	out := make([]Total, 0, len(sums))
	for k, ns := range sums {
		out = append(out, Total{k.actor, k.state, int64(ns + 0.5), ns / all})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Ns != out[j].Ns {
			return out[i].Ns > out[j].Ns
		}
		return out[i].Actor+out[i].State < out[j].Actor+out[j].State
	})
	return out
}
