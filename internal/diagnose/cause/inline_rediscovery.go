package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// inlineRediscovery: on MOVED, a library fetches the whole cluster map before it follows the redirect: that call takes
// a new connection and a map request more. The map request is cheap for the server; the call that waits for it is slow.
var inlineRediscovery = Cause{
	ID:      "inline-rediscovery",
	Options: []remedy.Topic{remedy.FetchMapInBackground},
	After:   []string{"moved-refresh-storm", "ask-redirect-during-migration", "failover-window"},
	Explain: func(*facts.Node) *Finding { return nil }, // a caller that gets MOVED from one node asks another
	Whole:   explainInline,
}

func explainInline(c *facts.Case, _ *Finding) *Finding {
	r := nodes.RedirectsOf(c)
	if r.Moved < minRedirects {
		return nil
	}
	in := nodes.InlineFetches(c)
	if !in.WaitsForMap(r.Moved) {
		return nil
	}
	f := &Finding{Of: c.Ledger.Calls()}
	trip, each := inlineCost(c, in)
	lost := in.Calls * each
	part := lost / max(lost+(r.DataCalls+r.Moved)*trip, 1)
	f.loseBeside(c.Nodes[0], facts.LostWaiting, part, int64(each))
	f.ofCalls(c.Nodes[0], max(part, r.Moved/(r.DataCalls+r.Moved)))
	f.support(recording.SourceServer, r.Moved, "replies", "%s got MOVED (errorstats), and the map was requested %.0f "+
		"times: once for each %s", counted(r.Moved, "call"), in.Calls, format.Rounded(r.Moved/in.Calls))
	source, library := fetchers(in)
	f.support(source, 0, "", "%s", library)
	if len(in.Fetchers.Concurrent) > 0 {
		f.doubt(in.Fetchers.Source, 0, "", "%s: also %s, which fetches the map in the background",
			in.Fetchers.KnownFrom, in.Fetchers.Concurrent.List(2))
	}
	seen := false
	if in.MapConns > 0 && float64(in.MapConns) >= in.Calls/2 {
		seen = true
		f.support(recording.SourceTap, float64(in.MapConns), "connections",
			"%s opened for the map alone, closed after %s (median): that long a call waited that should take %s",
			counted(in.MapConns, "connection"), format.Brief(in.MapConnLifeNs), format.Brief(int64(trip)))
	}
	if in.Library == "redis-py" && float64(in.DataConns) >= in.Calls/2 {
		seen = true
		f.support(recording.SourceTap, float64(in.DataConns), "connections", "%s reopened for calls, %s each before "+
			"the first call (median): redis-py drops its free connections with the map",
			counted(in.DataConns, "connection"), format.Brief(in.OpeningNs))
	}
	f.support(recording.SourceServer, each, "ns",
		"each adds about %s to its call; a call takes %s", format.Brief(int64(each)), format.Brief(int64(trip)))
	switch {
	case in.Guessed:
		f.doubt(recording.SourceServer, 0, "", "the library does not report its name (lib-name in CLIENT LIST, "+
			"servers from 7.2): it is inferred from its process and its connections")
	case !seen:
		f.doubt(recording.SourceServer, 0, "", "that the calls waited is known of the library, but was not seen")
	}
	if len(in.Requesters) > 0 {
		f.support(recording.SourceTap, float64(len(in.Requesters)), "callers", "the map is requested by %s",
			in.Requesters.List(3))
	}
	f.FixSteps = []remedy.Step{remedy.MoveInLargeSteps(c.Nodes[0])}
	if s, ok := remedy.StepOf(remedy.FetchMapInBackground, in.Library); ok {
		f.FixSteps = append(f.FixSteps, s)
	}
	return f
}

// inlineCost is what a call takes, and what waiting for the map adds, in nanoseconds: by the life of the connections
// that were seen, else a new connection, its handshake and the map request.
func inlineCost(c *facts.Case, in nodes.InlineFetch) (trip, each float64) {
	var asked nodes.MapRefresh
	var price int64
	for _, n := range c.Nodes {
		if r := nodes.MapRefreshOf(n); r.Calls > asked.Calls {
			asked = r
		}
		price = max(price, connection.ConnectionCostOf(n).OpeningNs)
	}
	trip, question := nodes.CallAndMapNs(c, asked)
	switch {
	case in.MapConns > 0:
		return trip, float64(in.MapConnLifeNs)
	case in.Library == "redis-py" && in.DataConns > 0:
		return trip, question + float64(in.OpeningNs)*float64(in.DataConns)/max(in.Calls, 1)
	}
	return trip, question + float64(price)
}
