package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// askRedirect: a slot is migrating. A key that has already moved costs its caller an ASK and another round trip; a
// command with several of its keys costs a TRYAGAIN and a pause of the library.
var askRedirect = Cause{
	ID:      "ask-redirect-during-migration",
	Changes: []string{"map", "CLUSTER *"},
	Explain: func(*facts.Node) *Finding { return nil }, // a redirected call is on two nodes
	Whole:   explainAsk,
}

// tryAgainNs is how long a library waits after TRYAGAIN, in nanoseconds.
// Bound: library, retryDelayOnTryAgain of ioredis.
const tryAgainNs = 100e6

func explainAsk(c *facts.Case, _ *Finding) *Finding {
	r := nodes.RedirectsOf(c)
	again := max(r.Ask, r.Asking) + r.TryAgain
	if again < minRedirects || again < minRedirectShare*(r.DataCalls+again) {
		return nil
	}
	f := &Finding{Of: c.Ledger.Calls(), Grade: Counted}
	n := c.Nodes[0]
	callNs := connection.ConnectionCostOf(n).CallNs
	f.lose(n, facts.LostWaiting, (again-r.TryAgain)*float64(callNs), callNs)
	f.ofCalls(n, again/(r.DataCalls+again))
	if r.TryAgain > 0 {
		f.lose(n, facts.LostWaiting, r.TryAgain*tryAgainNs, tryAgainNs)
	}
	if r.Ask > 0 {
		f.support(recording.SourceServer, r.Ask, "replies",
			"%s got ASK (%.1f per second; errorstats): each took another round trip, to the other node",
			counted(r.Ask, "call"), r.Ask/c.Seconds())
	}
	if r.Asking > 0 {
		f.support(recording.SourceServer, r.Asking, "calls",
			"%s came with ASKING (commandstats): %.1f %% of all calls", counted(r.Asking, "call"),
			100*r.Asking/max(r.DataCalls, r.Asking, 1))
	}
	if r.TryAgain > 0 {
		f.support(recording.SourceServer, r.TryAgain, "replies",
			"%s with several keys got TRYAGAIN, since some of the keys had moved: the library waits before it "+
				"retries (ioredis 100 ms)", counted(r.TryAgain, "command"))
	}
	if len(r.OpenSlots) > 0 {
		text := strings.Join(r.OpenSlots[:min(degree.Listed, len(r.OpenSlots))], ", ")
		if more := len(r.OpenSlots) - degree.Listed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		f.support(recording.SourceServer, float64(len(r.OpenSlots)), "slots", "migrating: %s", text)
	} else {
		f.doubt(recording.SourceServer, 0, "slots",
			"CLUSTER NODES showed no open slot when it was read: the "+
				"migrations are short, or on nodes that are not watched")
	}
	if !r.ErrorsCounted {
		f.doubt(recording.SourceServer, 0, "",
			"this version does not count error replies by type: TRYAGAIN and MOVED were not seen")
	}
	if r.Moved > again {
		f.doubt(recording.SourceServer, r.Moved, "replies", "%s got MOVED: more than got ASK", counted(r.Moved, "call"))
	}
	f.FixSteps = askFix(n, r)
	return f
}

func askFix(n *facts.Node, r nodes.Redirects) []remedy.Step {
	fix := []remedy.Step{{
		ID: "finish-migration", Kind: remedy.Command,
		Text:    "Move the keys that are left, and close the slots, where no resharding runs any more",
		Command: remedy.ClusterCLI(n, "fix"),
		Risk:    "big keys block both nodes while they move; it disturbs a resharding that still runs",
	}, remedy.MigrateByReplication(n)}
	if r.TryAgain > 0 {
		fix = append(fix, inApplication("one-key-each", "Until then ask for each key by a command of its own: the "+
			"library follows ASK at once, and waits after TRYAGAIN (ioredis retryDelayOnTryAgain, 100 ms)"))
	}
	return fix
}
