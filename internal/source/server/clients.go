package server

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
)

// Client is a line of CLIENT LIST, and of the snapshot "clients". Fields that the server's version does not have are
// left out.
type Client struct {
	ID      int64  `json:"id"`
	Addr    string `json:"addr"` // over a Unix socket PATH:FD, with the descriptor of the server's end
	Name    string `json:"name,omitempty"`
	Age     int64  `json:"age"`  // seconds since it connected
	Idle    int64  `json:"idle"` // seconds since its last command
	Flags   string `json:"flags"`
	DB      int64  `json:"db"`
	Sub     int64  `json:"sub,omitempty"`
	Multi   int64  `json:"multi"` // commands in MULTI, -1 outside
	Qbuf    int64  `json:"qbuf"`  // bytes not yet processed
	OBL     int64  `json:"obl"`   // bytes in the fixed output buffer
	OLL     int64  `json:"oll"`   // blocks in the output list
	OMem    int64  `json:"omem"`  // bytes in the output list
	TotMem  int64  `json:"tot_mem,omitempty"`
	Events  string `json:"events,omitempty"`
	Cmd     string `json:"cmd"`
	User    string `json:"user,omitempty"`
	RESP    int64  `json:"resp,omitempty"`
	LibName string `json:"lib_name,omitempty"`
	LibVer  string `json:"lib_ver,omitempty"`
	Self    bool   `json:"self,omitempty"` // a connection of slowpath
}

// Observes reports whether the client is a slowpath that watches the server, by its name: neither a user nor a load.
// The tap's programs know the same names (is_observer_name of bpf/commands.h).
func (c Client) Observes() bool {
	return c.Name == "slowpath" || c.Name == ClientName || c.Name == "slowpath-topology"
}

// maxClientLines bounds a CLIENT LIST; listing more would cost the server more than any budget allows.
const maxClientLines = 200_000

// ParseClients reads CLIENT LIST: a line of name=value pairs per client. Names and values hold no spaces: the server
// refuses them.
func ParseClients(text string) []Client {
	var out []Client
	for line := range strings.Lines(text) {
		if len(out) == maxClientLines {
			break
		}
		if c, ok := parseClient(line); ok {
			out = append(out, c)
		}
	}
	return out
}

func parseClient(line string) (c Client, ok bool) {
	c.Multi = -1
	fd := int64(0)
	numbers := map[string]*int64{
		"id": &c.ID, "fd": &fd, "age": &c.Age, "idle": &c.Idle, "db": &c.DB, "sub": &c.Sub,
		"multi": &c.Multi, "qbuf": &c.Qbuf,
		"obl": &c.OBL, "oll": &c.OLL, "omem": &c.OMem, "tot-mem": &c.TotMem, "resp": &c.RESP,
	}
	texts := map[string]*string{
		"addr": &c.Addr, "name": &c.Name, "flags": &c.Flags, "events": &c.Events, "cmd": &c.Cmd,
		"user":     &c.User,
		"lib-name": &c.LibName, "lib-ver": &c.LibVer,
	}
	for pair := range strings.FieldsSeq(line) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			continue
		}
		if to := texts[key]; to != nil {
			*to = clip(value)
		} else if to := numbers[key]; to != nil {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				*to = n
			}
		}
	}
	if path, unix := strings.CutSuffix(c.Addr, ":0"); unix && fd > 0 && strings.Contains(c.Flags, "U") {
		c.Addr = path + ":" + strconv.FormatInt(fd, 10) // the server has :0 for all of them
	}
	c.Self = strings.HasPrefix(c.Name, "slowpath")
	return c, c.Addr != "" || c.ID != 0
}

// ClientCounts is the snapshot "clients-summary": all clients, in as many groups as the listing has no room for.
// Connections of slowpath are counted in Self only.
type ClientCounts struct {
	Clients int            `json:"clients"` // without slowpath's own
	Self    int            `json:"self"`
	Listed  int            `json:"listed"` // lines in the snapshot "clients"
	Lib     map[string]int `json:"lib"`    // "jedis 5.1.0", "" where the client does not say
	Host    map[string]int `json:"host"`
	Flag    map[string]int `json:"flag"` // by letter: O monitor, b blocked, S replica, P pubsub, N none, …
	Cmd     map[string]int `json:"cmd"`
}

const (
	maxListedClients = 2000
	maxGroups        = 500 // per map; the rest is counted under "…"
)

// countClients groups the clients.
func countClients(clients []Client) ClientCounts {
	n := ClientCounts{
		Listed: min(len(clients), maxListedClients), Lib: map[string]int{}, Host: map[string]int{},
		Flag: map[string]int{}, Cmd: map[string]int{},
	}
	for _, c := range clients {
		if c.Self {
			n.Self++
			continue
		}
		n.Clients++
		count(n.Lib, strings.TrimSpace(c.LibName+" "+c.LibVer))
		count(n.Host, hostOf(c.Addr))
		count(n.Cmd, c.Cmd)
		for _, flag := range c.Flags {
			count(n.Flag, string(flag))
		}
	}
	return n
}

func count(groups map[string]int, key string) {
	if _, known := groups[key]; !known && len(groups) >= maxGroups {
		key = "…"
	}
	groups[key]++
}

func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// clientLines is the body of the snapshot "clients".
func clientLines(clients []Client) string {
	var b strings.Builder
	for _, c := range clients[:min(len(clients), maxListedClients)] {
		line, err := json.Marshal(c)
		if err == nil { // a struct of numbers and strings always encodes
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
