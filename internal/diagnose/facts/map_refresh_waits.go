package facts

// Bounds of a storm.
const (
	// RefreshShare of the main thread's time is more than bookkeeping may take: a cluster whose clients asked for the
	// map too often was noticed at 18 %.
	MinRefreshShare = 0.05
	// perMoved questions of a node follow from each MOVED reply, at most: a client asks one node, or each node once.
	maxFetchesPerMoved = 1.0
)

// ByEvents reports whether the map is asked for because slots moved: each MOVED reply can make a client ask, and of one
// that asks all nodes each is asked once.
func (r MapRefresh) FollowsMoved() bool { return r.Moved > 0 && r.Calls <= maxFetchesPerMoved*r.Moved }

// RefreshPattern is the part of all calls' time that they wait for the map to be written, 0 where the map takes too
// little of the thread: calls come in at random and meet half of a question with the probability of the thread's share
// (M/G/1), and a thread without time left makes them queue for each other.
func (n *Node) RefreshWaitShare(r MapRefresh) float64 {
	if r.Share < MinRefreshShare {
		return 0
	}
	wait := r.Share * float64(r.PerCall()) / 2 / max(1-r.Share, 0.05)
	alone := wait
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		alone = float64(kept.P50Ns)
	}
	share := wait / max(wait+alone, 1)
	if d, ok := n.Demand(); ok && d.Total() >= SaturatedDemand {
		if q, known := n.Queue(); known {
			share = max(share, q.Share()*r.CPUShare)
		}
		share = max(share, r.CPUShare*SaturatedRun)
	}
	return min(share, 1)
}
