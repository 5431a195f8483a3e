package capture

import (
	"net/netip"
	"slices"

	"slowpath/internal/recording"
)

// Bounds of what is kept in memory.
const (
	maxConns   = 50_000   // connections that are followed at a time
	maxNodes   = 256      // servers
	maxHeld    = 64 << 20 // bytes of segments that came before others, of all connections
	maxWaiting = 200_000  // requests that wait for their reply, of all connections
	maxOps     = 1000     // different commands
	// forgetNs is after how long without a packet a connection gives its place to a new one, where there are too many.
	forgetNs = int64(10 * 60 * 1e9)
)

// analysis is one reading of a capture.
type analysis struct {
	Options
	sink  Sink
	conns map[connKey]*conn
	nodes map[netip.AddrPort]*node
	ops   map[string]*op
	spelt map[string]*op // as clients spell them
	rows  int            // since the last flush
	hists int            // of all nodes
	sizes int            // of all nodes

	aroundNs int64 // a time of the capture,
	votes    int   // and by how many packets more agree with it than do not
	surveyed bool  // it is known from the survey

	now            int64 // the latest time of a packet
	startNs, endNs int64
	second         int64 // of the histograms
	sampledNs      int64 // from when on the next call that is not slow is recorded
	heldBytes      int
	waiting        int
	sweptNs        int64
	seen           counts
	pair           *pair // with a capture of the other end; nil: there is none
}

// counts are what was seen of the file.
type counts struct {
	packets    int64 // all
	tcp        int64 // of these, segments of TCP
	data       int64 // of these, with data
	outOfTime  int64 // with a time that cannot be
	cut        int64 // segments of which the file has a part
	duplicates int64 // packets that the capture has twice
	conns      int64 // connections to servers
	unfollowed int64 // packets of connections for which there was no room
	tls        int64 // connections under TLS to servers
	calls      int64 // with a reply
	unpaired   int64 // whose reply is not known
	subscribed int64 // connections that only receive from then on
	foreign    int64 // connections that do not speak RESP
	oneWay     int64 // requests to whose replies there are only acknowledgements
	opsFull    int64
	dropped    int64 // packets that are missing, by what the maker of the file says in it
}

// connKey is a connection: its two ends in the order of their addresses.
type connKey struct{ low, high netip.AddrPort }

func newAnalysis(o Options, sink Sink) *analysis {
	return &analysis{
		Options: o, sink: sink, conns: map[connKey]*conn{}, nodes: map[netip.AddrPort]*node{},
		ops: map[string]*op{}, spelt: map[string]*op{},
	}
}

// learn takes from the survey which addresses are servers, and where their packets were captured.
func (a *analysis) learn(survey *analysis) {
	a.aroundNs, a.votes, a.surveyed = survey.aroundNs, survey.votes, true
	for address, n := range survey.nodes {
		a.nodes[address] = &node{
			address: address, toServerNs: n.toServerNs, toClientNs: n.toClientNs, vantage: n.vantageOf(),
		}
	}
}

// packet takes the next packet of the file.
func (a *analysis) packet(p *packet) {
	a.seen.packets++
	if !a.inTime(p.ns) {
		a.seen.outOfTime++
		return
	}
	p.ns = max(p.ns, 1) // 0 is no time in a recording
	if a.startNs == 0 || p.ns < a.startNs {
		a.startNs = p.ns
	}
	a.now, a.endNs = max(a.now, p.ns), max(a.endNs, p.ns)
	if !p.tcp {
		return
	}
	a.seen.tcp++
	if p.size > 0 {
		a.seen.data++
	}
	if p.size > len(p.payload) {
		a.seen.cut++
	}
	if second := a.now / 1e9; second != a.second {
		a.writeHistograms()
		a.second = second
	}
	if c := a.connOf(p); c != nil && !c.foreign {
		c.packet(p)
	}
}

// inTime reports whether a time can be one of this capture, which may count from 0. The survey finds out around which
// time most packets are: single ones may have none.
func (a *analysis) inTime(ns int64) bool {
	near := a.votes > 0 && ns <= a.aroundNs+int64(maxSpan) && ns >= a.aroundNs-int64(maxSpan)
	switch {
	case ns < 0 || a.surveyed && !near:
		return false
	case a.surveyed:
	case near:
		a.votes++
	case a.votes > 1:
		a.votes--
		return false
	default:
		a.votes, a.aroundNs, a.startNs, a.endNs, a.now = 1, ns, 0, 0, 0
	}
	return true
}

// connOf finds the connection of a packet. One without data, of a connection that is not known, begins none.
func (a *analysis) connOf(p *packet) *conn {
	k := connKey{p.src, p.dst}
	if p.dst.Compare(p.src) < 0 {
		k = connKey{p.dst, p.src}
	}
	c := a.conns[k]
	opens := p.flags&flagSYN != 0 && p.flags&flagACK == 0
	if c != nil && opens && c.over(p) { // the ports are used again
		c.end()
		delete(a.conns, k)
		c = nil
	}
	if c != nil || !opens && p.size == 0 {
		return c
	}
	if len(a.conns) >= maxConns && !a.forget() {
		a.seen.unfollowed++
		return nil
	}
	c = newConn(a, k, p, opens)
	a.conns[k] = c
	return c
}

// forget makes room for new connections, and reports whether there is some. It looks once per second of the capture.
func (a *analysis) forget() bool {
	if a.now-a.sweptNs >= 1e9 {
		a.sweptNs = a.now
		for k, c := range a.conns {
			if c.foreign || c.ended || a.now-c.lastNs > forgetNs {
				c.end()
				delete(a.conns, k)
			}
		}
	}
	return len(a.conns) < maxConns
}

// server reports whether an address is that of a server.
func (a *analysis) server(address netip.AddrPort) bool { return a.nodes[address] != nil }

// nodeAt is the server of an address; nil where there are too many.
func (a *analysis) nodeAt(address netip.AddrPort) *node {
	n := a.nodes[address]
	if n == nil && len(a.nodes) < maxNodes {
		n = &node{address: address, vantage: a.usualVantage()}
		a.nodes[address] = n
	}
	return n
}

// usualVantage is that of most servers.
func (a *analysis) usualVantage() vantage {
	var count [between + 1]int
	for _, n := range a.nodes {
		count[n.vantage]++
	}
	best := atClient
	for v := atClient; v <= between; v++ {
		if count[v] > count[best] {
			best = v
		}
	}
	if count[best] == 0 {
		return unknownVantage
	}
	return best
}

func (a *analysis) nodeNames() (out []string) {
	var used []*node
	for _, n := range a.nodes {
		if n.proven {
			used = append(used, n)
		}
	}
	slices.SortFunc(used, func(x, y *node) int {
		if x.calls != y.calls {
			return int(min(max(y.calls-x.calls, -1), 1))
		}
		return x.address.Compare(y.address)
	})
	for _, n := range used {
		out = append(out, n.address.String())
	}
	return out
}

// event records something that happened at a server.
func (a *analysis) event(n *node, kind string, fromNs, ns int64, detail any) {
	a.rows++
	a.sink.Event(recording.Event{
		TimeNs: fromNs, DurationNs: max(ns, 0), Source: recording.SourceTap, Subject: n.address.String(), Kind: kind,
		Detail: recording.Detail(detail),
	})
}
