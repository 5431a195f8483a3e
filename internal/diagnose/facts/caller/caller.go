package caller

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording/series"
)

// Caller is a process on this host that calls a node, or, where only the server's end of its connections was seen, a
// host.
type Caller struct {
	// Name is "redigo[29867]" for a process, or "10.0.0.7" for a host.
	Name string
	// HostName is the name of that host; empty where it is not known.
	HostName string
	// PID is the id of the process; 0 where it is not on this host.
	PID int
	// Comm is the name of the process.
	Comm string
	// Conns are its connections, in order of their begin.
	Conns []*Conn
	// Processes is the number of processes (or hosts) that a Caller of programOf stands for; 0 for a single one.
	Processes int

	// leftOutCalls are calls on connections that are not among Conns: the tap did not follow these all the time.
	leftOutCalls int64
	// roundTripNs is the cached result of RoundTripNs.
	roundTripNs int64
}

// InFlightNs is the time in nanoseconds that its connections had a call in flight, each connection for itself.
func (c *Caller) InFlightNs() (ns int64) {
	for _, k := range c.Conns {
		ns += k.InFlightNs
	}
	return ns
}

// SpentNs is the time in nanoseconds that it spent on its connections: dialling, and waiting for replies.
func (c *Caller) SpentNs() (ns int64) {
	for _, k := range c.Conns {
		ns += k.spentNs()
	}
	return ns
}

// AppCalls is the number of calls that the application asked for, as far as they were followed.
func (c *Caller) AppCalls() int64 {
	calls := c.leftOutCalls
	for _, k := range c.Conns {
		calls += k.AppCalls()
	}
	return calls
}

// RoundTripNs is the mean time of a round trip on its connections, in nanoseconds.
func (c *Caller) RoundTripNs() int64 {
	if c.roundTripNs > 0 {
		return c.roundTripNs
	}
	var trips, ns int64
	for _, k := range c.Conns {
		trips, ns = trips+int64(k.HandshakeRoundTrips())+k.AppCalls(), ns+k.spentNs()-k.DialNs-k.tlsNs()
	}
	c.roundTripNs = ns / max(trips, 1)
	return c.roundTripNs
}

// Opened are the connections that it opened during the watch.
func (c *Caller) Opened() []*Conn {
	return c.ConnsWhere(func(k *Conn) bool { return k.OpenNs > 0 })
}

// ConnsWhere are the connections that match.
func (c *Caller) ConnsWhere(match func(*Conn) bool) (out []*Conn) {
	for _, k := range c.Conns {
		if match(k) {
			out = append(out, k)
		}
	}
	return out
}

// MaxConcurrent is the largest number of its connections, those of one process, that were open at the same time.
func (c *Caller) MaxConcurrent() (most int) {
	for _, conns := range ByOwner(c.Conns) {
		var open []facts.Span
		for _, k := range conns {
			open = append(open, facts.Span{FromNs: k.OpenNs, ToNs: cmp.Or(k.CloseNs, math.MaxInt64)})
		}
		most = max(most, facts.MaxOverlap(open))
	}
	return most
}

// CallerNames lists callers for a message, some by name.
func CallerNames(callers []*Caller) string {
	var out []string
	for _, c := range callers[:min(degree.Listed, len(callers))] {
		out = append(out, HostText(c.Name, c.HostName))
	}
	if more := len(callers) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// Callers are all who call the node, those with most time in flight first; slowpath is none of them.
func Callers(n *facts.Node) []*Caller {
	return slices.Clone(callerTableOf(n).callers)
}

// Servers are the processes of all watched servers, which call each other.
func Servers(c *facts.Case) map[int]bool {
	out := map[int]bool{}
	for _, n := range c.Nodes {
		if pid, ok := n.Series(series.ProcessID).Last(); ok {
			out[int(pid)] = true
		}
	}
	return out
}

// IsServerProcess reports whether a process is a server, by its name: "redis-server[12]", or "redis-server" alone.
func IsServerProcess(process string) bool {
	comm, _, _ := strings.Cut(process, "[")
	return strings.HasPrefix(comm, "redis-serv") || strings.HasPrefix(comm, "valkey-serv") ||
		strings.HasPrefix(comm, "keydb-serv") || strings.HasPrefix(comm, "codis-serv")
}

// ClientCallers are the callers of a node that are no servers.
func ClientCallers(n *facts.Node) []*Caller {
	servers := Servers(n.Case)
	return slices.DeleteFunc(Callers(n), func(c *Caller) bool { return servers[c.PID] || IsServerProcess(c.Comm) })
}

// CallerByPID finds a process among the callers; one whose connections were not seen has no connections.
func CallerByPID(n *facts.Node, pid int) *Caller {
	for _, c := range Callers(n) {
		if c.PID == pid {
			return c
		}
	}
	for _, call := range n.Rec.Calls { // its connections were not seen
		if call.Client != "" && hosts.PIDOf(call.Client) == pid {
			comm, _, _ := strings.Cut(call.Client, "[")
			return &Caller{Name: call.Client, PID: pid, Comm: comm}
		}
	}
	return &Caller{Name: fmt.Sprintf("process %d", pid), PID: pid}
}

// CallersAreAmong reports whether every process that calls is one of the applications, by its name, of which comm has
// 15 characters.
func CallersAreAmong(c *facts.Case, apps []*hosts.Application) bool {
	known := map[string]bool{}
	for _, a := range apps {
		known[a.Name[:min(len(a.Name), 15)]] = true
	}
	seen := 0
	for _, n := range c.Nodes {
		for _, caller := range Callers(n) {
			if !known[caller.Comm] {
				return false
			}
			seen++
		}
	}
	return seen > 0
}

// SlowForCaller reports whether slow calls are a pattern of the calls of one process.
func SlowForCaller(n *facts.Node) bool {
	slow := map[int]int{}
	for _, a := range n.Ledger.Slow {
		if pid := hosts.PIDOf(a.Call.Client); pid > 0 && a.Call.Node == n.Address {
			slow[pid]++
		}
	}
	return slices.ContainsFunc(Callers(n), func(c *Caller) bool {
		k := slow[c.PID]
		return facts.Affected{Calls: k, Share: float64(k) / float64(max(c.AppCalls(), 1))}.Pattern()
	})
}
