package cause

import (
	"math"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// supportAlone says, for a cause in the slow node itself, that the calls which waited for it were not parts of
// fan-outs.
func (f *Finding) supportAlone(n *facts.Node) {
	samples, held, chance := 0, 0, 0.0
	for _, o := range nodes.Fanouts(n) {
		samples, held, chance = samples+o.Samples, held+o.WithOthers, chance+o.ByChance
		if o.Share() >= degree.Most {
			return
		}
	}
	if samples >= degree.Several {
		f.support(recording.SourceTap, float64(held), "looks",
			"its callers asked one node at a time: in %d of %d samples of slow calls that waited, another node was "+
				"asked at the same time (by chance up to %.0f)", held, samples, math.Ceil(chance))
	}
}

func (f *Finding) supportRefreshes(n *facts.Node, r nodes.MapRefresh) {
	what := r.Command.String()
	if r.SubcommandsMerged {
		what = "CLUSTER"
	}
	f.support(recording.SourceServer, r.Share, "of the time",
		"%s takes %.1f %% of the main thread's time: %.1f calls per second of %s each (commandstats)", what,
		r.Share*100, r.Calls/n.Seconds(), format.Brief(int64(r.PerCall())))
	if r.CPUShare > 0 {
		f.support(recording.SourceServer, r.CPUShare, "of its work",
			"that is %.0f %% of all the CPU time of that thread", r.CPUShare*100)
	}
	size, _ := nodes.MapSize(n)
	f.support(recording.SourceServer, float64(size.Nodes), "nodes",
		"the map has %s and %s; on %s the cost of a call grows with it", counted(size.Nodes, "node"),
		counted(size.Ranges, "slot range"), n.Server())
	if k := mainthread.TapCalls(n, r.Command.String()); r.SubcommandsMerged && k > 0 {
		f.support(recording.SourceTap, float64(k), "calls", "%d of them are %s", k, r.Command)
	}
	if r.OnNewConns {
		more := ""
		if nodes.SameCount(r.InfoCalls, r.Calls) {
			more = ", each with an INFO, as Lettuce refreshes"
		}
		f.support(recording.SourceServer, r.ConnsOpened, "connections",
			"%s opened meanwhile, about as many as there were map requests%s", counted(r.ConnsOpened, "connection"),
			more)
	}
	if len(r.Requesters) > 0 {
		who := r.Requesters.List(degree.Listed)
		if r.Library != "" && !strings.Contains(strings.ToLower(who), r.Library) {
			who += " (" + r.Library + ")"
		}
		f.support(mainthread.StateSource(n), float64(len(r.Requesters)), "callers", "requested by %s", who)
	}
}

// Fewer redirects than both of these concern a key or two in passing.
const (
	minRedirectShare = facts.HealthyMaxShare // of the calls
	minRedirects     = degree.Many           // during the watch
)

// minRefreshRate is the rate of map refreshes, per second and node, from which they are too many: libraries that
// refresh by a timer do so once in 10 to 60 seconds.
const minRefreshRate = degree.Several
