package nodes

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
)

// FollowsMoved reports whether the map is asked for because slots moved: a client asks one node for each MOVED reply,
// or each node once.
func (r MapRefresh) FollowsMoved() bool { return r.Moved > 0 && r.Calls <= r.Moved }

// RefreshWaitShare is the share of all calls' time that they wait for map refreshes, 0 for less than a part: calls come
// at random and wait for half of a refresh with the probability of the thread's share (M/G/1), and where the thread has
// no time left, calls queue for each other.
func RefreshWaitShare(n *facts.Node, r MapRefresh) float64 {
	wait := r.Share * float64(r.PerCall()) / 2 / max(1-r.Share, degree.Part)
	alone := wait
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		alone = float64(kept.P50Ns)
	}
	share := wait / max(wait+alone, 1)
	if d, ok := mainthread.DemandOf(n); ok && d.Total() >= facts.SaturatedDemand {
		if q, known := n.Queue(); known {
			share = max(share, q.Share()*r.CPUShare)
		}
		share = max(share, r.CPUShare*facts.SaturatedRun)
	}
	if share < degree.Part {
		return 0
	}
	return min(share, 1)
}
