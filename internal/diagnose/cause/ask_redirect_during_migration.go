package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// askRedirect: a slot is open. Keys of it that have gone cost their callers an ASK and another round trip, commands
// over several of its keys a TRYAGAIN and a pause of the library.
var askRedirect = Cause{
	ID:    "ask-redirect-during-migration",
	Title: "Slots are on their way from one node to another: calls are answered ASK and repeated at the other node",
	Layer: "client",
	Needs: Needs{
		T0: "ASK and TRYAGAIN in errorstats (since 6.2), ASKING in commandstats of the other node, open slots in " +
			"CLUSTER NODES",
		T2: "how many of the calls were ASKING",
	},
	Explain: func(*facts.Node) *Finding { return nil }, // a call that is sent on is on two nodes
	Whole:   explainAsk,
}

func explainAsk(c *facts.Case, _ *Finding) *Finding {
	r := c.Redirects()
	again := max(r.Ask, r.Asking) + r.TryAgain
	if again < minRedirects || again < minRedirectShare*(r.DataCalls+again) {
		return nil
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.9, ExcessShare: again / max(r.DataCalls+again, 1)}
	if r.Ask > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered ASK (%.1f per second; errorstats): "+
			"each took another round trip, to the other node", r.Ask, r.Ask/c.Seconds()), r.Ask, "replies")
	}
	if r.Asking > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f came back with ASKING (commandstats): %.1f %% of all calls",
			r.Asking, 100*r.Asking/max(r.DataCalls, r.Asking, 1)), r.Asking, "calls")
	}
	if r.TryAgain > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f commands over several keys were answered TRYAGAIN, since "+
			"some of their keys have gone: the library waits before it tries again (ioredis 100 ms)", r.TryAgain),
			r.TryAgain, "replies")
	}
	if len(r.OpenSlots) > 0 {
		text := strings.Join(r.OpenSlots[:min(3, len(r.OpenSlots))], ", ")
		if more := len(r.OpenSlots) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		f.support(recording.SourceServer, "on their way: "+text, float64(len(r.OpenSlots)), "slots")
	} else {
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "CLUSTER NODES showed no open slot when it was read: the moves are short, or "+
			"on nodes that are not watched", 0, "slots")
	}
	if !r.ErrorsCounted {
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "this version does not count replies by their error: TRYAGAIN and MOVED were "+
			"not seen", 0, "")
	}
	if r.Moved > again {
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED: more than ASK", r.Moved), r.Moved,
			"replies")
	}
	at := c.Nodes[0].Address
	f.Fix = []string{
		"Finish the move, slot by slot: redis-cli --cluster check " + at + " names the open slots, redis-cli " +
			"--cluster fix " + at + " closes those that nobody moves any more",
		"Move slots that are asked much at a quiet hour, and each to its end before the next (redis-cli --cluster " +
			"reshard does)",
		"Keep keys that one command takes in one slot, and let it retry: TRYAGAIN lasts as long as the slot is open " +
			"(ioredis retryDelayOnTryAgain: 20; redis-py waits 50 ms in its second half of attempts)",
		"Redis ≥ 8.4 and Valkey ≥ 9.0 move a slot at once, by replication: no ASK, no TRYAGAIN",
	}
	f.See = []string{
		"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#ask-redirection",
		"https://github.com/valkey-io/valkey/pull/1949",
	}
	return f
}
