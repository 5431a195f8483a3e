package facts

import "slowpath/internal/diagnose/degree"

const (
	// SaturatedDemand is the demand of the main thread in cores from which it is saturated. A queue grows without limit
	// as the utilisation approaches 1: here ten calls are in the system on average (M/M/1).
	SaturatedDemand = degree.NearlyAll
	// SaturatedRun is the least part of that which it runs itself: below, it is not its own work that fills the time.
	SaturatedRun = degree.Most
)

// Queue is what a call of the probe waited behind others.
type Queue struct {
	// MedianNs is the median time of the calls on the kept connection, in nanoseconds.
	MedianNs int64
	// UnqueuedNs is the time of a call that does not queue, in nanoseconds.
	UnqueuedNs int64
	// WaitNs is the difference: the time in the queue, in nanoseconds.
	WaitNs int64
}

// Share is the time in the queue as a share of the median call.
func (q Queue) Share() float64 {
	if q.MedianNs <= 0 {
		return 0
	}
	return float64(q.WaitNs) / float64(q.MedianNs)
}

// Queue compares the median call with one that does not queue: the fastest TCP connect (a round trip, and the making of
// a socket) or the fastest call, whichever took longer.
func (n *Node) Queue() (Queue, bool) {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if !ok || kept.Calls == 0 {
		return Queue{}, false
	}
	fresh, _ := n.Ledger.Path(n.Address, "fresh")
	q := Queue{MedianNs: kept.P50Ns, UnqueuedNs: max(kept.MinNs, fresh.ConnectMinNs)}
	q.WaitNs = max(q.MedianNs-q.UnqueuedNs, 0)
	return q, true
}
