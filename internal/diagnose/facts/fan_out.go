package facts

import (
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// FanOut is what a server writes to clients that did not just ask for it: messages of subscriptions, invalidations of
// caches, replication.
type FanOut struct {
	// Share is that of its writes, at least: those that are more than it had reads.
	Share float64
	// Trackers are its clients with CLIENT TRACKING, at most at a time.
	Trackers float64
}

// FanOut is that of this node; zero where the server counts no writes (before 6.0).
func (n *Node) FanOut() (f FanOut) {
	writes, reads := n.Growth(series.TotalWritesProcessed), n.Growth(series.TotalReadsProcessed)
	if writes > 0 {
		f.Share = max(0, 1-reads/writes)
	}
	f.Trackers, _ = n.Series(series.TrackingClients).Max()
	return f
}

// fannedOut is the meaning of writes to clients where most of them answer no request: what the samples show of what
// makes messages for others. ok is false where most writes are replies, or no sample shows what else they are.
func (n *Node) fannedOut(samples []loopSample) (m stacks.Meaning, ok bool) {
	if n.FanOut().Share <= mostlyUnasked {
		return m, false
	}
	count := map[string]int{}
	for _, s := range samples {
		switch s.ID {
		case stacks.Tracking, stacks.KeyspaceEvents:
			if count[s.ID]++; count[s.ID] > count[m.ID] {
				m = s.Meaning
			}
		}
	}
	return m, m.ID != ""
}

// mostlyUnasked: with a larger share of writes that answer no read, writing is not the price of replies.
// Bound: majority, of the writes.
const mostlyUnasked = 0.5
