package capture

import (
	"net/netip"

	"slowpath/internal/recording"
)

// node is a server.
type node struct {
	address netip.AddrPort
	proven  bool  // it has answered a request
	calls   int64 // with a reply
	// least times from a packet to its acknowledgement, between the place of the capture and either end; 0: unknown
	toServerNs, toClientNs int64
	local, remote          bool // it has clients at its own address, at others
	vantage                vantage
	hists                  map[*op]*latencies
	errors                 map[string]float64 // error replies, by the name of their sample
	sizes                  map[direction]*recording.SegmentSizes
}

// vantage is where a capture was made, as far as times show it.
type vantage int

const (
	unknownVantage vantage = iota
	atClient               // what is sent to the server is acknowledged after a round trip, what comes back at once
	atServer               // the reverse
	atBoth                 // both ends are on this host
	between                // somewhere on the path
)

// vantageNames are for people.
var vantageNames = map[vantage]string{
	unknownVantage: "at an unknown place", atClient: "at the client's side", atServer: "at the server's side",
	atBoth: "on the host of both ends", between: "between the two ends",
}

// fartherTimes: an end that is so many times farther than the other is the other end of the path.
const fartherTimes = 3

// vantageOf finds out where the packets of the server's connections were captured. A server that has clients at its own
// address is on the host of the capture.
func (n *node) vantageOf() vantage {
	s, c := n.toServerNs, n.toClientNs
	switch {
	case n.local && n.remote:
		return atServer
	case n.local:
		return atBoth
	case s == 0 || c == 0:
		return unknownVantage
	case c >= fartherTimes*s:
		return atServer
	case s >= fartherTimes*c:
		return atClient
	}
	return between
}

// side is the end of connections from which calls count as seen.
func (n *node) side() string {
	if n.vantage == atServer {
		return recording.Server
	}
	return recording.Client
}

// wayNs is about the time from the place of the capture to the server, one way.
func (n *node) wayNs() int64 {
	if n.vantage == atServer || n.vantage == atBoth {
		return 0
	}
	return n.toServerNs / 2
}

// hasClient learns from the address of a client.
func (n *node) hasClient(client netip.Addr) {
	same := client == n.address.Addr() || client.IsLoopback()
	n.local, n.remote = n.local || same, n.remote || !same
}

// roundTrip learns from the time until a segment was acknowledged.
func (n *node) roundTrip(fromClient bool, ns int64) {
	at := &n.toClientNs
	if fromClient {
		at = &n.toServerNs
	}
	if ns = max(ns, 1); *at == 0 || ns < *at {
		*at = ns
	}
}

// op is a command.
type op struct {
	name     string
	blocking bool // it may wait by design
	parent   bool // it has subcommands
}

// subcommandBytes of a subcommand are kept, as by the tap.
const subcommandBytes = 8

// parents are the commands that have subcommands.
var parents = map[string]bool{
	"CLIENT": true, "CLUSTER": true, "CONFIG": true, "COMMAND": true, "DEBUG": true, "MEMORY": true, "SCRIPT": true,
	"LATENCY": true, "SLOWLOG": true, "ACL": true, "XINFO": true, "OBJECT": true,
}

// opOf names a request by its first two arguments.
func (a *analysis) opOf(name, sub []byte) *op {
	o := a.spelt[string(name)]
	if o == nil {
		o = a.opNamed(recording.CommandName(string(name)))
		if len(a.spelt) < maxOps {
			a.spelt[string(name)] = o
		}
	}
	if !o.parent || len(sub) == 0 {
		return o
	}
	s := recording.SubcommandName(string(sub))
	if s == "" {
		return o
	}
	return a.opNamed(o.name + " " + s[:min(len(s), subcommandBytes)])
}

// opNamed is the command of a name; UnknownCommand where there are too many.
func (a *analysis) opNamed(name string) *op {
	if o := a.ops[name]; o != nil {
		return o
	}
	if len(a.ops) >= maxOps && name != recording.UnknownCommand {
		a.seen.opsFull++
		return a.opNamed(recording.UnknownCommand)
	}
	o := &op{name: name, blocking: recording.MayBlock(name), parent: parents[name]}
	a.ops[name] = o
	return o
}
