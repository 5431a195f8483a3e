package cause

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// supportAlone says, in the finding of a cause of the slow node itself, that the calls which waited for it were no
// parts of others.
func (f *Finding) supportAlone(n *facts.Node) {
	looks, held, chance := 0, 0, 0.0
	for _, o := range n.Fanouts() {
		looks, held, chance = looks+o.Samples, held+o.WithOthers, chance+o.ByChance
		if o.Share() >= minFanoutShare {
			return
		}
	}
	if looks >= facts.MinFanoutSamples {
		f.support(recording.SourceTap, fmt.Sprintf("its callers asked one node at a time: in %d of %d looks at slow "+
			"calls that waited, another node had been sent to at the same moment (by chance up to %.0f)", held, looks,
			math.Ceil(chance)), float64(held), "looks")
	}
}

func (f *Finding) supportRefreshes(n *facts.Node, r facts.MapRefresh) {
	what := r.Command.String()
	if r.SubcommandsMerged {
		what = "CLUSTER"
	}
	text := fmt.Sprintf("%s takes %.1f %% of the main thread's time: %.1f calls per second of %s each (commandstats)",
		what, r.Share*100, r.Calls/n.Seconds(), facts.Dur(int64(r.PerCall())))
	f.support(recording.SourceServer, text, r.Share, "of the time")
	if r.CPUShare > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("that is %.0f %% of all the CPU time that the thread used",
			r.CPUShare*100), r.CPUShare, "of its work")
	}
	size, _ := n.MapSize()
	f.support(recording.SourceServer, fmt.Sprintf("the map has %d nodes and %d ranges of slots; on %s a call costs "+
		"by its size", size.Nodes, size.Ranges, n.Rec.Meta[recording.MetaServer]), float64(size.Nodes), "nodes")
	if k := n.TapCalls(r.Command.String()); r.SubcommandsMerged && k > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d of them are %s", k, r.Command), float64(k), "calls")
	}
	if r.OnNewConns {
		more := ""
		if facts.SameCount(r.InfoCalls, r.Calls) {
			more = ", and with each goes an INFO: so refreshes Lettuce"
		}
		f.support(recording.SourceServer, fmt.Sprintf("%.0f connections were opened meanwhile, about as many as the "+
			"map was asked for%s", r.ConnsOpened, more), r.ConnsOpened, "connections")
	}
	if len(r.Requesters) > 0 {
		who := r.Requesters.List(3)
		if r.Library != "" && !strings.Contains(strings.ToLower(who), r.Library) {
			who += " (" + r.Library + ")"
		}
		f.support(n.StateSource(), "it is asked for by "+who, float64(len(r.Requesters)), "callers")
	}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f clients that ask this node once a minute would ask as often",
		r.Calls/n.Seconds()*60), r.Calls/n.Seconds()*60, "clients")
}

// minFanoutShare is the least share of the sampled waits that belong to a fan-out: below it, most slow calls have
// another pattern.
const minFanoutShare = 0.5

// Fewer redirects than both of these concern a key or two in passing.
const (
	minRedirectShare = 0.01 // of the calls
	minRedirects     = 10   // during the watch
)

// minRefreshRate is the rate of map refreshes, per second and node, from which they are too many: one client that
// refreshes on its own asks a few times per minute.
const minRefreshRate = 1.0
