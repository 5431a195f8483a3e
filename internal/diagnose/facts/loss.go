package facts

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/account"
)

// LossKind is a kind of time that callers lose outside of slow calls.
type LossKind string

// Kinds of losses.
const (
	// LostInCalls: calls that are not slow take longer than they need (queues, distance, one after the other).
	LostInCalls LossKind = "in calls"
	// LostOpening: connections are opened and tested (DNS, dial, TLS, handshake, PING).
	LostOpening LossKind = "opening connections"
	// LostWaiting: calls wait in the client before they are sent, for a connection or a retry, or are sent twice.
	LostWaiting LossKind = "waiting in the client"
	// LostSilent: calls wait for a reply that never comes.
	LostSilent LossKind = "waiting for no reply"
	// LostAcks: WAIT and WAITAOF wait for replicas or the disk, by what the server counts.
	LostAcks LossKind = "waiting for acknowledgements"
)

// Loss is time that callers lost outside of slow calls, in nanoseconds of all callers together.
type Loss struct {
	Kind LossKind
	Ns   float64
	// EachNs is what a caller lost at once, in nanoseconds; 0: it is not known, or so little that nobody notices it.
	EachNs int64
	// AllNs is what all callers lost, where Ns is what slowpath's own calls stand for; 0: Ns is all.
	AllNs float64
}

// MeanCallNs is how long calls to the node took on average, in nanoseconds: those of its users where the tap saw them,
// else slowpath's own.
func (n *Node) MeanCallNs() int64 {
	of := n.Ledger.Users
	if of.Calls == 0 {
		of = n.Ledger.Probe
	}
	return of.TotalNs / int64(max(of.Calls, 1))
}

// CallNs is what something explains of a slow call.
type CallNs struct {
	// Index is the call's place in the ledger's slow calls.
	Index int
	// Ns is the time in nanoseconds, at most the excess of the call.
	Ns float64
	// Times are the states in which it passed, together Ns or more. They are shared: nobody changes them.
	Times StateTimes
}

// MergeCalls adds up what two claims explain of each call.
func MergeCalls(a, b []CallNs) []CallNs {
	out := slices.Clone(a)
	at := map[int]int{}
	for i, c := range out {
		at[c.Index] = i
	}
	for _, c := range b {
		if i, ok := at[c.Index]; ok {
			out[i] = CallNs{c.Index, out[i].Ns + c.Ns, mergeTimes(out[i], c)}
		} else {
			out = append(out, c)
		}
	}
	return out
}

// mergeTimes are the states of the time of both.
func mergeTimes(a, b CallNs) (t StateTimes) {
	for _, c := range []CallNs{a, b} {
		t = append(t, c.Times.Times(c.Ns/max(float64(c.Times.Ns()), 1))...)
	}
	return t
}

// NoticedNs is what a caller notices on top of a call: account.Noticed, or less where --slow says so.
func (c *Case) NoticedNs() int64 { return min(int64(account.Noticed), c.Ledger.ThresholdNs) }

// LossNoticed reports whether anybody notices time that callers lose outside of slow calls, such as by new connections:
// one of them loses as much as by a slow call, or all callers together lose a tenth of the time (MinShare). A page of
// PHP that connects in 0.2 ms, thirty times per second, is slower by that, and nobody sees it.
func (c *Case) LossNoticed(l Loss) bool {
	return l.EachNs >= c.NoticedNs() || cmp.Or(l.AllNs, l.Ns) >= MinShare*float64(c.EndNs-c.StartNs)
}

// LossNoticed reports whether anybody notices eachNs lost at once, and lostNs in all.
func (n *Node) LossNoticed(eachNs int64, lostNs float64) bool {
	return n.Case.LossNoticed(Loss{Ns: lostNs, EachNs: eachNs})
}
