package facts

import (
	"bufio"
	"encoding/json"
	"net"
	"strings"
)

// Client is a line of the snapshot "clients" (CLIENT LIST without what could hold users' data).
type Client struct {
	ID      int64  `json:"id"`
	Addr    string `json:"addr"`
	Name    string `json:"name"`
	Age     int64  `json:"age"`  // seconds
	Idle    int64  `json:"idle"` // seconds
	Flags   string `json:"flags"`
	Cmd     string `json:"cmd"`
	Qbuf    int64  `json:"qbuf"`
	OMem    int64  `json:"omem"`
	LibName string `json:"lib_name"`
	LibVer  string `json:"lib_ver"`
	Self    bool   `json:"self"` // a connection of slowpath
}

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

// Clients are all lines of CLIENT LIST that the watch kept, without slowpath's own connections.
func (n *Node) Clients() []Client {
	var out []Client
	for _, c := range n.AllClients {
		if !c.Self {
			out = append(out, c)
		}
	}
	return out
}

// ClientsWith are the clients that match, each once.
func (n *Node) DistinctClients(match func(Client) bool) []Client {
	seen := map[string]bool{}
	var out []Client
	for _, c := range n.Clients() {
		if !seen[c.Addr] && match(c) {
			seen[c.Addr] = true
			out = append(out, c)
		}
	}
	return out
}

// Monitors are the clients that run MONITOR.
func (n *Node) Monitors() []Client {
	return n.DistinctClients(func(c Client) bool { return strings.Contains(c.Flags, "O") })
}

// Listed reports whether CLIENT LIST was seen with all its lines (the snapshot holds 2 000): who is not in it is not
// there.
func (n *Node) AllClientsListed() bool {
	most, ok := n.Info("connected_clients").Max()
	return len(n.Clients()) > 0 && (!ok || most <= 2000)
}

func LibraryText(c Client) string {
	parts := strings.TrimSpace(c.LibName + " " + c.LibVer)
	if c.Name != "" {
		parts = strings.TrimPrefix(parts+", name "+c.Name, ", ")
	}
	if parts == "" {
		return ""
	}
	return " (" + parts + ")"
}

func HostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
