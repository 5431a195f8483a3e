package caller

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
)

// ClientText names the client of a suspect: its address from SLOWLOG, its library from CLIENT LIST, and its process
// where it is on this host; where only commandstats have the command, a client whose last command it was.
func ClientText(n *facts.Node, s account.Suspect) string {
	return WhoSent(n, s).Text()
}

// WhoSent is the client of a suspect. Where no source has its address, it is who sent such a command that changed the
// server, or else a client whose last command it was; where CLIENT LIST does not have its connection, its library is
// that of others of its process, or else of its host.
func WhoSent(n *facts.Node, s account.Suspect) Who {
	if s.Client == "" && s.Process == "" {
		for _, a := range AdminCommands(n) {
			if a.Command == s.Command {
				return a.Who
			}
		}
	}
	if w, ok := sentOverUnix(n, s); ok {
		return w
	}
	var same Client
	for _, c := range AllClients(n) {
		if !c.Self && (s.Client == "" && sameAs(c.Cmd, s.Command) ||
			s.Client != "" && HostOf(c.Addr) == HostOf(s.Client) && c.LibName != "") {
			same = c
		}
	}
	w := WhoOf(n, cmp.Or(s.Client, same.Addr), s.Process, s.ToNs)
	if other, _ := endAt(n, same.Addr, s.ToNs); w.Client.Addr == "" && w.PID == other.pid {
		w.Client = same
	}
	return w
}

// UserOf is the ACL user that sent a suspect's command. Where CLIENT LIST does not have its connection any more, it is
// the one user of all clients; empty where there are several.
func UserOf(n *facts.Node, s account.Suspect) string {
	var its, all []string
	for _, c := range AllClients(n) {
		if c.Self || c.User == "" {
			continue
		}
		all = append(all, c.User)
		if s.Client != "" && c.Addr == s.Client || s.Client == "" && sameAs(c.Cmd, s.Command) {
			its = append(its, c.User)
		}
	}
	for _, users := range [][]string{its, all} {
		slices.Sort(users)
		if users = slices.Compact(users); len(users) == 1 {
			return users[0]
		} else if len(users) > 1 {
			return ""
		}
	}
	return ""
}

// FromText is " from ADDRESS" of the first suspect whose client is known; empty where none is.
func FromText(n *facts.Node, ss []account.Suspect) string {
	for _, s := range ss {
		if who := ClientText(n, s); who != "" {
			return " from " + format.Name(who)
		}
	}
	return ""
}
