package nodes

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
)

const (
	// MinRefreshShare is the share of the main thread's time from which map refreshes take too much: a cluster whose
	// clients refreshed too often was noticed at 18 %.
	// Bound: guess, well below the 18 % that were noticed.
	MinRefreshShare = 0.05
	// maxFetchesPerMoved is the most questions to a node that follow from one MOVED reply: a client asks one node, or
	// each node once.
	// Bound: library, none asks a node twice for one MOVED.
	maxFetchesPerMoved = 1.0
	// minIdleShare bounds a queue that would grow for ever.
	// Bound: arithmetic, a guard of a division.
	minIdleShare = 0.05
)

// FollowsMoved reports whether the map is asked for because slots moved: no more than maxFetchesPerMoved questions for
// each MOVED reply.
func (r MapRefresh) FollowsMoved() bool { return r.Moved > 0 && r.Calls <= maxFetchesPerMoved*r.Moved }

// RefreshWaitShare is the share of all calls' time that they wait for map refreshes, 0 below MinRefreshShare: calls
// come at random and wait for half of a refresh with the probability of the thread's share (M/G/1), and where the
// thread has no time left, calls queue for each other.
func RefreshWaitShare(n *facts.Node, r MapRefresh) float64 {
	if r.Share < MinRefreshShare {
		return 0
	}
	wait := r.Share * float64(r.PerCall()) / 2 / max(1-r.Share, minIdleShare)
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
	return min(share, 1)
}
