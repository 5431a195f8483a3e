package facts

const (
	SaturatedDemand = 0.9
	SaturatedRun    = 0.5 // below, it is not its own work that fills the time
)

// Queue is what a call of the probe waited behind others.
type Queue struct {
	MedianNs   int64 // of the calls on the kept connection
	UnqueuedNs int64 // what a call takes that waits for nobody
	WaitNs     int64
}

func (q Queue) Share() float64 {
	if q.MedianNs <= 0 {
		return 0
	}
	return float64(q.WaitNs) / float64(q.MedianNs)
}

// Queue compares the median call with one that waits for nobody: the fastest TCP connect (a round trip, and the making
// of a socket) or the fastest call, whichever took longer.
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
