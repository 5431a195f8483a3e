package facts

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/format"
)

// ClientText names the client of a suspect: its address from SLOWLOG, its library from CLIENT LIST, and its process
// where it is on this host; where only commandstats have the command, a client whose last command it was.
func (n *Node) ClientText(s account.Suspect) string {
	who := n.whoByServer(s)
	if s.Process == "" || who == "" {
		return who
	}
	if at, library, ok := strings.Cut(who, " ("); ok {
		return at + " (" + s.Process + ", " + library
	}
	return who + " (" + s.Process + ")"
}

// whoByServer names it by what the server knows.
func (n *Node) whoByServer(s account.Suspect) string {
	var same *Client
	for i, c := range n.AllClients {
		if c.Self {
			continue
		}
		switch {
		case s.Client != "" && c.Addr == s.Client:
			return s.Client + LibraryText(c)
		case s.Client != "" && HostOf(c.Addr) == HostOf(s.Client) && c.LibName != "", s.Client == "" && sameAs(c.Cmd,
			s.Command):
			same = &n.AllClients[i]
		}
	}
	switch {
	case s.Client == "" && same != nil:
		return same.Addr + LibraryText(*same)
	case s.Client != "" && same != nil:
		return s.Client + LibraryText(*same)
	}
	return s.Client
}

// UserOf is the ACL user that sent a suspect's command. Where CLIENT LIST does not have its connection any more, it is
// the one user of all clients; empty where there are several.
func (n *Node) UserOf(s account.Suspect) string {
	var its, all []string
	for _, c := range n.AllClients {
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

// sameAs reports whether the cmd of CLIENT LIST ("client|list", before 7.0 "client") is a command.
func sameAs(cmd, command string) bool {
	cmd = strings.ToUpper(strings.ReplaceAll(cmd, "|", " "))
	return cmd != "" && (cmd == command || strings.HasPrefix(command, cmd+" "))
}

// FromText is " from ADDRESS" of the first suspect whose client is known; empty where none is.
func (n *Node) FromText(ss []account.Suspect) string {
	for _, s := range ss {
		if who := n.ClientText(s); who != "" {
			return " from " + format.Name(who)
		}
	}
	return ""
}
