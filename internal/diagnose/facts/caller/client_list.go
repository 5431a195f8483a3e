package caller

import (
	"bufio"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Client is a line of the snapshot "clients" (CLIENT LIST without what could hold users' data).
type Client struct {
	// ID is its number; the server gives it once.
	ID int64 `json:"id"`
	// Addr is its address; over a Unix socket PATH:FD, with the descriptor of the server's end, which others may have
	// before and after it. In older recordings it is PATH:0.
	Addr string `json:"addr"`
	// Name is what CLIENT SETNAME gave it.
	Name string `json:"name"`
	// User is the ACL user that it has logged in as (6.0 and later).
	User string `json:"user"`
	// Age is the age of the connection in seconds.
	Age int64 `json:"age"`
	// Idle is the time since its last command in seconds.
	Idle int64 `json:"idle"`
	// Flags are those of CLIENT LIST: b for a blocked client, O for MONITOR.
	Flags string `json:"flags"`
	// Cmd is its last command: "client|list", before 7.0 "client".
	Cmd string `json:"cmd"`
	// Qbuf is the size of its query buffer in bytes.
	Qbuf int64 `json:"qbuf"`
	// OMem is the size of its output buffer in bytes.
	OMem int64 `json:"omem"`
	// LibName is the name of its library (CLIENT SETINFO).
	LibName string `json:"lib_name"`
	// LibVer is the version of its library.
	LibVer string `json:"lib_ver"`
	// DB is the number of its database.
	DB int64 `json:"db"`
	// Self says that it is a connection of slowpath.
	Self bool `json:"self"`
}

// ClientList is a snapshot of CLIENT LIST.
type ClientList struct {
	// TimeNs is when it was taken, in nanoseconds since the Unix epoch.
	TimeNs int64
	// Clients are its lines, slowpath's own connections included.
	Clients []Client
}

// ClientLists are those of the node, in order of time.
func ClientLists(n *facts.Node) []ClientList {
	return facts.Once(n, "CLIENT LIST", func(n *facts.Node) (out []ClientList) {
		for _, s := range n.Rec.Snapshots {
			if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "clients" {
				out = append(out, ClientList{s.TimeNs, ParseClients(s.Body)})
			}
		}
		return out
	})
}

// ParseClients reads a snapshot "clients". Lines that do not parse are left out.
func ParseClients(body string) []Client {
	var out []Client
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var cl Client
		if json.Unmarshal(sc.Bytes(), &cl) == nil {
			out = append(out, cl)
		}
	}
	return out
}

// AllClients are the lines of all snapshots of CLIENT LIST of the node, slowpath's own connections included.
func AllClients(n *facts.Node) []Client {
	return facts.Once(n, "all clients", func(n *facts.Node) (out []Client) {
		for _, l := range ClientLists(n) {
			out = append(out, l.Clients...)
		}
		return out
	})
}

// Clients are all lines of CLIENT LIST that were recorded, without slowpath's own connections.
func Clients(n *facts.Node) []Client {
	return slices.DeleteFunc(slices.Clone(AllClients(n)), func(c Client) bool { return c.Self })
}

// OverUnix reports whether it is connected over a Unix socket.
func (c Client) OverUnix() bool {
	return strings.Contains(c.Flags, "U") || strings.HasPrefix(c.Addr, "/")
}

// ClientNames are what the connections of a caller call themselves (CLIENT SETNAME), each name once.
func ClientNames(n *facts.Node, caller *Caller) (names []string) {
	its := map[string]bool{}
	for _, k := range caller.Conns {
		its[k.Client] = true
	}
	for _, c := range AllClients(n) {
		if c.Name != "" && its[c.Addr] && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// watchName is the name of the one connection to a node by which a slowpath reads what the server reports.
const watchName = "slowpath-watch"

// OtherObservers is how many other slowpaths watched the node at a time, at most.
func OtherObservers(n *facts.Node) (most int) {
	for _, l := range ClientLists(n) {
		count := 0
		for _, c := range l.Clients {
			if c.Name == watchName {
				count++
			}
		}
		most = max(most, count-1) // one is that of this watch
	}
	return most
}

// Observed reports whether calls of observers reached the node that are not those of this watch's probe of it: of other
// slowpaths, or of this one through a proxy. What the server counts holds them.
func Observed(n *facts.Node) bool {
	calls, _ := n.Rec.Of(series.TapCallsObserver, "").Last()
	return calls > 0 || OtherObservers(n) > 0
}

// DistinctClients are the clients that match, each address once.
func DistinctClients(n *facts.Node, match func(Client) bool) []Client {
	seen := map[string]bool{}
	var out []Client
	for _, c := range Clients(n) {
		if !seen[c.Addr] && match(c) {
			seen[c.Addr] = true
			out = append(out, c)
		}
	}
	return out
}

// Monitors are the clients that run MONITOR.
func Monitors(n *facts.Node) []Client {
	return DistinctClients(n, func(c Client) bool { return strings.Contains(c.Flags, "O") })
}

// maxListedClients is how many clients a snapshot of CLIENT LIST holds.
// Bound: slowpath, maxListedClients of internal/source/server.
const maxListedClients = 2000

// AllClientsListed reports whether CLIENT LIST was recorded with all its lines. With fewer than
// maxListedClients, one that is not in it does not exist.
func AllClientsListed(n *facts.Node) bool {
	most, ok := n.Series(series.ConnectedClients).Max()
	return len(Clients(n)) > 0 && (!ok || most <= maxListedClients)
}

// LibraryText is " (LIBRARY VERSION, name NAME)" of a client for a message; empty where nothing is known.
func LibraryText(c Client) string {
	if parts := c.details(); len(parts) > 0 {
		return " (" + strings.Join(parts, ", ") + ")"
	}
	return ""
}

// details are its library, the name that it gave itself, and its database where that is not the first.
func (c Client) details() (parts []string) {
	if library := withVersion(c.LibName, c.LibVer); library != "" {
		parts = append(parts, library)
	}
	if c.Name != "" {
		parts = append(parts, "name "+c.Name)
	}
	if c.DB > 0 {
		parts = append(parts, "db "+strconv.FormatInt(c.DB, 10))
	}
	return parts
}

// HostOf is the host of an address.
func HostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
