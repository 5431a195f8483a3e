package facts

import (
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// UnixClients is what is known of clients over Unix sockets, whose calls the tap does not see.
type UnixClients struct {
	// Most is how many there were at a time, at most.
	Most int
	// Share is how much of the node's commands no source saw, where the server's end of its TCP connections was seen;
	// elsewhere it is their share of the clients.
	Share float64
	// ByCommands says that Share is one of commands.
	ByCommands bool
}

// nesting are commands that run others, which the server counts, too: no source sees these arrive.
var nesting = []string{"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "exec"}

// UnixClients finds the clients over Unix sockets in CLIENT LIST: the flag is U, and the address a path.
func (n *Node) UnixClients() (u UnixClients) {
	for _, s := range n.Rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != "clients" {
			continue
		}
		here, all := 0, 0
		for _, c := range ParseClients(s.Body) {
			if c.Self {
				continue
			}
			all++
			if strings.Contains(c.Flags, "U") || strings.HasPrefix(c.Addr, "/") {
				here++
			}
		}
		if here > u.Most {
			u.Most, u.Share = here, float64(here)/float64(all)
		}
	}
	if u.Most == 0 {
		return u
	}
	commands := n.Growth(series.TotalCommandsProcessed)
	if seen, known := n.commandsSeen(); known && commands > 0 {
		u.Share, u.ByCommands = max(1-seen/commands, 0), true
	}
	return u
}

// commandsSeen is how many commands the tap saw arrive at the server, with those of observers; known is false where it
// did not watch this node alone, or where commands ran others.
func (n *Node) commandsSeen() (seen float64, known bool) {
	if len(n.Nodes) != 1 || !n.Rec.OwnCallsApart() {
		return 0, false
	}
	for _, name := range nesting {
		if n.Growth(series.CommandCalls(name)) > 0 {
			return 0, false
		}
	}
	if _, leftOut := n.Rec.Of(series.TapLeftOut, "").Last(); leftOut {
		return 0, false
	}
	// the server's own count has the last second of the watch only in part
	for _, of := range []series.Name{
		series.TapCallsServer, series.TapCallsOwn, series.TapCallsObserver, series.TapUnaligned,
	} {
		seen += LastValue(n.Series(of))
	}
	return seen, seen > 0
}
