package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// inlineRediscovery: a library that is told MOVED fetches the whole map before it sends the call on: the one call takes
// a connection and a question more. That the map is asked for is not what costs; that somebody waits for
// it is.
var inlineRediscovery = Cause{
	ID:    "inline-rediscovery",
	Title: "A call that is answered MOVED waits until its library has fetched the whole map of the cluster again",
	Layer: "client",
	Needs: Needs{
		T0: "MOVED in errorstats with as many CLUSTER SLOTS, of libraries that wait for it by their names in CLIENT " +
			"LIST (node-redis, redis-py, Jedis)",
		T2: "connections that are opened for the map alone, or anew after it, and how long each takes",
	},
	After:   []string{"moved-refresh-storm", "ask-redirect-during-migration", "failover-window"},
	Explain: func(*facts.Node) *Finding { return nil }, // who is told MOVED by one node asks another
	Whole:   explainInline,
}

func explainInline(c *facts.Case, _ *Finding) *Finding {
	r := c.Redirects()
	if r.Moved < minRedirects {
		return nil
	}
	in := c.InlineFetches()
	if !in.WaitsForMap(r.Moved) {
		return nil
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.8}
	trip, each := inlineCost(c, in)
	lost := in.Calls * each
	f.ExcessShare = lost / max(lost+(r.DataCalls+r.Moved)*trip, 1)
	f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED (errorstats), and the map was "+
		"asked for %.0f times: once for each %.2g", r.Moved, in.Calls, r.Moved/in.Calls), r.Moved, "replies")
	if in.Guessed {
		f.support(recording.SourceTap, "the callers fetch the map as "+in.Library+" does, which lets the call wait "+
			"for it", 0, "")
	} else {
		f.support(in.Fetchers.Source, in.Fetchers.KnownFrom+": the library is "+in.Library+", which lets the call "+
			"wait for "+
			"the map", 0, "")
	}
	if len(in.Fetchers.Concurrent) > 0 {
		f.doubt(in.Fetchers.Source, in.Fetchers.KnownFrom+": "+in.Fetchers.Concurrent.List(2)+" as well, which "+
			"fetches the "+
			"map "+
			"beside the calls", 0, "")
	}
	if in.MapConns > 0 && float64(in.MapConns) >= in.Calls/2 {
		f.Confidence = 0.9
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were opened for the map alone, and closed after "+
			"%s (median): so long a call waited that a call of %s was to be", in.MapConns, facts.Dur(in.MapConnLifeNs),
			facts.Dur(int64(trip))),
			float64(in.MapConns), "connections")
	}
	if in.Library == "redis-py" && float64(in.DataConns) >= in.Calls/2 {
		f.Confidence = 0.9
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were opened anew for calls, %s each before the "+
			"first (median): redis-py drops its free connections with the map", in.DataConns, facts.Dur(in.OpeningNs)),
			float64(in.DataConns), "connections")
	}
	f.support(recording.SourceServer, fmt.Sprintf("each costs its call about %s more, where a call takes %s",
		facts.Dur(int64(each)), facts.Dur(int64(trip))), each, "ns")
	switch {
	case in.Guessed:
		f.Confidence -= 0.2
		f.doubt(recording.SourceServer, "the library does not say its name (lib-name in CLIENT LIST, servers from "+
			"7.2 on): it is inferred from its process and its connections", 0, "")
	case f.Confidence < 0.9:
		f.doubt(recording.SourceServer, "that the calls waited is known of the library, and was not seen", 0, "")
	}
	if len(in.Requesters) > 0 {
		f.support(recording.SourceTap, "the map is asked for by "+in.Requesters.List(3), float64(len(in.Requesters)),
			"callers")
	}
	how, _ := remedy.Of(remedy.FetchMapBesideCalls, in.Library)
	f.Fix = []string{how, "Move slots in few large steps, or with Redis ≥ 8.4 (CLUSTER " +
		"MIGRATION IMPORT) and Valkey ≥ 9.0 (CLUSTER MIGRATESLOTS): one change of owner for a whole range"}
	f.See = []string{
		"https://github.com/redis/node-redis/blob/master/docs/clustering.md",
		"https://redis.readthedocs.io/en/stable/clustering.html",
		"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#moved-redirection",
	}
	return f
}

// inlineCost is what a call takes, and what it takes more where it waits for the map, in nanoseconds: by the life of
// the connections that were seen, else a new connection, its handshake and the question.
func inlineCost(c *facts.Case, in facts.InlineFetch) (trip, each float64) {
	var asked facts.MapRefresh
	var price int64
	for _, n := range c.Nodes {
		if r := n.MapRefresh(); r.Calls > asked.Calls {
			asked = r
		}
		price = max(price, n.ConnectionCost().OpeningNs)
	}
	trip, question := c.CallAndMapNs(asked)
	switch {
	case in.MapConns > 0:
		return trip, float64(in.MapConnLifeNs)
	case in.Library == "redis-py" && in.DataConns > 0:
		return trip, question + float64(in.OpeningNs)*float64(in.DataConns)/max(in.Calls, 1)
	}
	return trip, question + float64(price)
}
