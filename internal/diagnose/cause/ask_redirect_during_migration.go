package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
)

// askRedirect: a slot is open. Keys of it that have gone cost their callers an ASK and another round trip, commands
// over several of its keys a TRYAGAIN and a pause of the library. Catalogue D5.
var askRedirect = Cause{
	ID:    "ask-redirect-during-migration",
	Title: "Slots are on their way from one node to another: calls are answered ASK and sent again, to the other node",
	Layer: "client",
	Needs: Needs{
		T0: "ASK and TRYAGAIN in errorstats (since 6.2), ASKING in commandstats of the other node, open slots in " +
			"CLUSTER NODES",
		T2: "how many of the calls were ASKING",
	},
	Explain: func(*Node) *Finding { return nil }, // a call that is sent on is on two nodes
	Whole:   explainAsk,
}

// Bounds: fewer are a key or two in passing.
const (
	redirectShare = 0.01 // of the calls
	redirectMin   = 10   // in the watch
)

// redirects is what was sent on in a cluster.
type redirects struct {
	ask, tryAgain float64 // replies; 0 where they are not counted (before 6.2)
	asking        float64 // ASKING, the call after an ASK
	moved         float64
	data          float64 // calls of applications that were carried out
	counted       bool    // whether errors are counted by their kind
	open          []string
}

func (c *Case) redirects() (r redirects) {
	r.moved = c.movedReplies()
	r.counted = r.moved >= 0
	r.moved = max(r.moved, 0)
	for _, n := range c.Nodes {
		r.ask += n.Growth("errorstat_ASK.count")
		r.tryAgain += n.Growth("errorstat_TRYAGAIN.count")
		r.asking += max(n.Growth("cmdstat_asking.calls"), float64(n.tapCalls("ASKING")))
		for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
			if base, ok := strings.CutSuffix(name, ".calls"); ok && dataCommand(strings.TrimPrefix(base, "cmdstat_")) &&
				base != "cmdstat_asking" {
				r.data += n.Growth(name)
			}
		}
		r.open = append(r.open, n.openSlots()...)
	}
	return r
}

// openSlots are the moves that a node of its own says are under way.
func (n *Node) openSlots() (out []string) {
	seen := map[string]bool{}
	for _, s := range n.Rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != "cluster-nodes" {
			continue
		}
		m, err := cluster.ParseNodes(s.Body)
		if err != nil {
			continue // it was cut short
		}
		for _, node := range m.Nodes {
			for _, move := range node.Migrating {
				to := move.NodeID
				if o, ok := m.Node(move.NodeID); ok {
					to = o.Addr()
				}
				text := fmt.Sprintf("slot %d from %s to %s", move.Slot, n.Address, to)
				if !seen[text] {
					seen[text] = true
					out = append(out, text)
				}
			}
		}
	}
	return out
}

func explainAsk(c *Case, _ *Finding) *Finding {
	r := c.redirects()
	again := max(r.ask, r.asking) + r.tryAgain
	if again < redirectMin || again < redirectShare*(r.data+again) {
		return nil
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.9, ExcessShare: again / max(r.data+again, 1)}
	if r.ask > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered ASK (%.1f per second; errorstats): "+
			"each took another round trip, to the other node", r.ask, r.ask/c.Seconds()), r.ask, "replies")
	}
	if r.asking > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f came back with ASKING (commandstats): %.1f %% of all calls",
			r.asking, 100*r.asking/max(r.data, r.asking, 1)), r.asking, "calls")
	}
	if r.tryAgain > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f commands over several keys were answered TRYAGAIN, since "+
			"some of their keys have gone: the library waits before it tries again (ioredis 100 ms)", r.tryAgain),
			r.tryAgain, "replies")
	}
	if len(r.open) > 0 {
		text := strings.Join(r.open[:min(3, len(r.open))], ", ")
		if more := len(r.open) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		f.support(recording.SourceServer, "on their way: "+text, float64(len(r.open)), "slots")
	} else {
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "CLUSTER NODES showed no open slot when it was read: the moves are short, or "+
			"on nodes that are not watched", 0, "slots")
	}
	if !r.counted {
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "this version does not count replies by their error: TRYAGAIN and MOVED were "+
			"not seen", 0, "")
	}
	if r.moved > again {
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED: more than ASK", r.moved), r.moved,
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
