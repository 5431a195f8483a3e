package cause

import (
	"math"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// supportAlone says, for a cause in the slow node itself, that the calls which waited for it were not parts of
// fan-outs.
func (f *Finding) supportAlone(n *facts.Node) {
	samples, held, chance := 0, 0, 0.0
	for _, o := range n.Fanouts() {
		samples, held, chance = samples+o.Samples, held+o.Held, chance+o.Chance
		if o.Share() >= facts.FanoutShare {
			return
		}
	}
	if samples >= facts.FanoutSamples {
		f.support(recording.SourceTap, float64(held), "looks",
			"its callers asked one node at a time: in %d of %d samples of slow calls that waited, another node was "+
				"asked at the same time (by chance up to %.0f)", held, samples, math.Ceil(chance))
	}
}

func (f *Finding) supportRefreshes(n *facts.Node, r facts.Refreshing) {
	what := r.Command.String()
	if r.Lumped {
		what = "CLUSTER"
	}
	f.support(recording.SourceServer, r.Share, "of the time",
		"%s takes %.1f %% of the main thread's time: %.1f calls per second of %s each (commandstats)", what,
		r.Share*100, r.Calls/n.Seconds(), facts.Dur(int64(r.PerCall())))
	if r.Work > 0 {
		f.support(recording.SourceServer, r.Work, "of its work",
			"that is %.0f %% of all the CPU time of that thread", r.Work*100)
	}
	size, _ := n.MapSize()
	f.support(recording.SourceServer, float64(size.Nodes), "nodes",
		"the map has %s and %s; on %s the cost of a call grows with it", counted(size.Nodes, "node"),
		counted(size.Ranges, "slot range"), n.Rec.Meta[recording.MetaServer])
	if k := n.TapCalls(r.Command.String()); r.Lumped && k > 0 {
		f.support(recording.SourceTap, float64(k), "calls", "%d of them are %s", k, r.Command)
	}
	if r.Fresh {
		more := ""
		if facts.About(r.Infos, r.Calls) {
			more = ", each with an INFO, as Lettuce refreshes"
		}
		f.support(recording.SourceServer, r.Opened, "connections",
			"%s opened meanwhile, about as many as there were map requests%s", counted(r.Opened, "connection"), more)
	}
	if len(r.By) > 0 {
		who := r.By.List(3)
		if r.Library != "" && !strings.Contains(strings.ToLower(who), r.Library) {
			who += " (" + r.Library + ")"
		}
		f.support(n.StateSource(), float64(len(r.By)), "callers", "requested by %s", who)
	}
	f.support(recording.SourceServer, r.Calls/n.Seconds()*60, "clients",
		"%s refreshing once a minute would ask this node as often", counted(r.Calls/n.Seconds()*60, "client"))
}
