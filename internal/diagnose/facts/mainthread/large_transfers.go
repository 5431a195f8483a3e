package mainthread

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// LargeTransfers are the long replies of a command, or its long requests, as the server logged them (COMMANDLOG).
type LargeTransfers struct {
	// Command is its name.
	Command string
	// Count is how many there are, Bytes their length in sum, MostBytes that of the longest.
	Count            int
	Bytes, MostBytes float64
	// Share is their part of all bytes that the server sent, or received.
	Share float64
	// Keys is how many keys they are about; 0 where that is not known.
	Keys int
	// Entries are what the event loop did for each, the longest first. Their time is estimated.
	Entries []account.Suspect
}

// keyLater are commands that reply with values, or store them, whose first argument is no key.
var keyLater = facts.WordSet(`EVAL XREAD XREADGROUP BITOP PUBLISH`)

// LargeReplies are those of the node, the command with most bytes first.
func LargeReplies(n *facts.Node) []LargeTransfers {
	return largeTransfers(n, recording.KindLargeReply, n.Growth(series.TotalNetOutputBytes))
}

// LargeRequests are those of the node, the command with most bytes first.
func LargeRequests(n *facts.Node) []LargeTransfers {
	return largeTransfers(n, recording.KindLargeRequest, n.Growth(series.TotalNetInputBytes))
}

func largeTransfers(n *facts.Node, kind string, all float64) []LargeTransfers {
	by, keys := map[string]*LargeTransfers{}, map[string]map[string]bool{}
	for _, e := range n.Events(recording.SourceServer, kind) {
		d := recording.DetailOf[recording.SlowlogDetail](e)
		if d.Bytes <= 0 {
			continue
		}
		t := by[d.Command]
		if t == nil {
			t = &LargeTransfers{Command: d.Command}
			by[d.Command], keys[d.Command] = t, map[string]bool{}
		}
		t.Count++
		t.Bytes += float64(d.Bytes)
		t.MostBytes = max(t.MostBytes, float64(d.Bytes))
		keys[d.Command][d.KeyHash] = true
		t.Entries = append(t.Entries, account.Suspect{
			Kind: account.KindBulk, Node: n.Address, Command: d.Command, ArgCount: d.ArgCount, Client: d.Client,
			FromNs: e.TimeNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: account.BulkNs(float64(d.Bytes)), Count: 1,
			Source: recording.SourceServer,
		})
	}
	var out []LargeTransfers
	for command, t := range by {
		t.Share = min(t.Bytes/max(all, t.Bytes, 1), 1)
		if (replyingCommands[command] || storingCommands[command]) && !keyLater[command] && !keys[command][""] {
			t.Keys = len(keys[command])
		}
		slices.SortStableFunc(t.Entries, func(a, b account.Suspect) int {
			return cmp.Compare(b.DurationNs, a.DurationNs)
		})
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b LargeTransfers) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Command, b.Command))
	})
	return out
}
