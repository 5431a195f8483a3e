package mainthread

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// FanOut is what a server writes to clients that did not just ask for it: messages of subscriptions, and which keys of
// their caches have changed.
type FanOut struct {
	// Share is that of its writes, at least: those that are more than it had reads.
	Share float64
	// Trackers are its clients with CLIENT TRACKING, and Subscribers those with subscriptions, at most at a time.
	Trackers, Subscribers int
	// Published is how many messages clients published during the watch.
	Published float64
}

// FanOutOf is that of this node; without a share where the server counts no writes (before 6.0).
func FanOutOf(n *facts.Node) (f FanOut) {
	writes, reads := n.Growth(series.TotalWritesProcessed), n.Growth(series.TotalReadsProcessed)
	if writes > 0 {
		f.Share = max(0, 1-reads/writes)
	}
	trackers, _ := n.Series(series.TrackingClients).Max()
	f.Trackers = int(trackers)
	f.Subscribers = len(caller.DistinctClients(n, func(c caller.Client) bool { return strings.Contains(c.Flags, "P") }))
	f.Published = n.Growth(series.CommandCalls("publish")) + n.Growth(series.CommandCalls("spublish"))
	return f
}

// sent is the meaning of writes to clients where most of them answer no request: the kind of messages that has enough
// receivers. Of several it is the one that most samples show being made. ok is false where most writes are replies, or
// it is not known what else they are.
func sent(n *facts.Node, table stacks.Table, samples []loopSample) (m stacks.Meaning, ok bool) {
	f := FanOutOf(n)
	if f.Share <= degree.Most {
		return m, false
	}
	made := map[string]int{}
	for _, s := range samples {
		made[s.ID]++
	}
	var may []string
	if f.Trackers >= degree.Many {
		may = append(may, stacks.Tracking)
	}
	if f.Subscribers >= degree.Many && f.Published > 0 {
		may = append(may, stacks.Published)
	}
	if f.Subscribers >= degree.Many && made[stacks.KeyspaceEvents] > 0 {
		may = append(may, stacks.KeyspaceEvents)
	}
	if len(may) == 0 {
		return m, false
	}
	most := slices.MaxFunc(may, func(a, b string) int { return cmp.Compare(made[a], made[b]) })
	i := slices.IndexFunc(table, func(m stacks.Meaning) bool { return m.ID == most })
	return table[i], len(may) == 1 || made[most] > 0
}
