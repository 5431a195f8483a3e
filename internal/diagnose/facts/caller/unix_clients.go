package caller

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording/series"
)

// UnixClients is what is known of clients over Unix sockets, whose calls the tap does not see.
type UnixClients struct {
	// Most is how many there were at a time, at most.
	Most int
	// Crowds are whose they were then.
	Crowds []Crowd
	// Share is how much of the node's commands no source saw, where the server's end of its TCP connections was seen;
	// elsewhere it is their share of the clients.
	Share float64
	// ByCommands says that Share is one of commands.
	ByCommands bool
}

// nesting are commands that run others, which the server counts, too: no source sees these arrive.
var nesting = []string{"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "exec"}

// UnixClientsOf finds the clients over Unix sockets in CLIENT LIST: the flag is U, and the address a path.
func UnixClientsOf(n *facts.Node) (u UnixClients) {
	for _, l := range ClientLists(n) {
		var here []Client
		all := 0
		for _, c := range l.Clients {
			if c.Self {
				continue
			}
			all++
			if c.OverUnix() {
				here = append(here, c)
			}
		}
		if len(here) > u.Most {
			u.Most, u.Share, u.Crowds = len(here), float64(len(here))/float64(all), crowdsIn(n, here, l.TimeNs)
		}
	}
	if u.Most == 0 {
		return u
	}
	commands := n.Growth(series.TotalCommandsProcessed)
	if seen, known := commandsSeen(n); known && commands > 0 {
		u.Share, u.ByCommands = max(1-seen/commands, 0), true
	}
	return u
}

// commandsSeen is how many commands the tap saw arrive at the server, with those of observers; known is false where it
// did not watch this node alone, or where commands ran others.
func commandsSeen(n *facts.Node) (seen float64, known bool) {
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
		seen += facts.LastValue(n.Series(of))
	}
	return seen, seen > 0
}

// unixClient is a client over a Unix socket, and from when to when CLIENT LIST surely has it at its address, which may
// be another one's before and after.
type unixClient struct {
	facts.Span
	Client
	commands []string // that it sent last, at each look
}

// unixClientAt is who had an address at a time; ok is false where that is not known for sure.
func unixClientAt(n *facts.Node, address string, at int64) (c unixClient, ok bool) {
	for _, c := range facts.Once(n, "clients over Unix sockets", findUnixClients)[address] {
		if c.FromNs <= at && at <= c.ToNs {
			return c, true
		}
	}
	return c, false
}

func findUnixClients(n *facts.Node) map[string][]unixClient {
	type key struct {
		address string
		id      int64
	}
	byKey := map[key]unixClient{}
	for _, s := range ClientLists(n) {
		for _, c := range s.Clients {
			if !c.OverUnix() || strings.HasSuffix(c.Addr, ":0") {
				continue
			}
			age := max(c.Age-1, 0) // it has whole seconds of the server's clock
			k, from := key{c.Addr, c.ID}, s.TimeNs-age*1e9
			before, ok := byKey[k]
			if ok {
				from = min(from, before.FromNs)
			}
			byKey[k] = unixClient{facts.Span{FromNs: from, ToNs: s.TimeNs}, c, append(before.commands, c.Cmd)}
		}
	}
	out := map[string][]unixClient{}
	for k, c := range byKey {
		out[k.address] = append(out[k.address], c)
	}
	return out
}

// sentOverUnix is who sent a command of SLOWLOG, which has the same address for all clients over a Unix socket: the one
// process among them that was seen to send this command. ok is false where it is not the only one, or not known.
func sentOverUnix(n *facts.Node, s account.Suspect) (sent Who, ok bool) {
	path, unix := strings.CutSuffix(s.Client, ":0")
	if !unix {
		return sent, false
	}
	for address, list := range facts.Once(n, "clients over Unix sockets", findUnixClients) {
		for _, c := range list {
			if HostOf(address) != path || c.Self || c.FromNs > s.ToNs ||
				!slices.ContainsFunc(c.commands, func(cmd string) bool { return sameAs(cmd, s.Command) }) {
				continue
			}
			if w := WhoOf(n, address, "", c.ToNs); w.PID == 0 || ok && w.PID != sent.PID {
				return Who{}, false
			} else if !ok || w.Address < sent.Address {
				sent, ok = w, true
			}
		}
	}
	return sent, ok
}

// sameAs reports whether the cmd of CLIENT LIST ("client|list", before 7.0 "client") is a command.
func sameAs(cmd, command string) bool {
	cmd = strings.ToUpper(strings.ReplaceAll(cmd, "|", " "))
	return cmd != "" && (cmd == command || strings.HasPrefix(command, cmd+" "))
}
