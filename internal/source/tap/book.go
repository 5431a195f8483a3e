//go:build linux

package tap

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"slowpath/internal/recording"
)

// book turns the reports of the programs into rows, and remembers what later reports refer to.
type book struct {
	Options
	time     func(uint64) int64
	opOf     func(uint16) nodeOp
	ends     map[netip.AddrPort]process // the clients' ends of connections
	names    map[uint32]string          // processes by number
	threads  map[uint32]*history        // what each thread did lately, by thread
	serving  map[uint32]Node            // nodes by thread that serves
	resent   map[netip.AddrPort][]span  // retransmissions by the client's end
	asked    map[uint64]*lookup         // questions to name servers, by socket
	waiting  map[callKey]*heldCall      // server's views that wait for the client's
	early    map[callKey]*earlyCall     // client's views that wait for the server's
	greeting map[uint64]*greeting       // handshakes under way, by connection
	self     int                        // slowpath's own process
	local    map[netip.AddrPort]bool    // clients' ends on this host that are watched
	told     map[uint64]int             // process at the client's end, by connection, as the recording has it
	lastOwn  [3]uint64                  // slowpath's own call that was booked last: connection, begin and end
	// connections of which the recording has that the order of calls at their server's end is known
	ordered map[uint64]bool
	readers readers
	looks   views
	chosen  *chosen                                 // nil: all calls are passed on
	unread  func(pid uint32)                        // is told of client processes that leave replies unread for long
	sealed  func(a *kernelAddr, pid uint32, n Node) // is told of processes that speak TLS with a node, or as one
	remote  func()                                  // is told once that there is a client on another host,
	parsed  func()                                  // and that there is a client whose own end is parsed

	crowd crowd

	// See forget.go.
	leaving   map[netip.AddrPort]int64 // connections that ended: when they will be forgotten
	owned     map[uint32]int           // how many of ends each process has
	idle      map[uint32]bool          // processes that had some
	gone      func(pid uint32)         // is told of those that are forgotten
	swept     int64                    // when threads were last looked through
	forgotten int                      // what was lost for want of room
}

type process struct {
	pid  int
	comm string
}

func (p process) String() string {
	if p.pid == 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d]", p.comm, p.pid)
}

func newBook(o Options, time func(uint64) int64, opOf func(uint16) nodeOp) *book {
	b := &book{
		Options: o, asked: map[uint64]*lookup{}, self: os.Getpid(), time: time, opOf: opOf,
		ends: map[netip.AddrPort]process{}, names: map[uint32]string{}, threads: map[uint32]*history{},
		serving: map[uint32]Node{}, resent: map[netip.AddrPort][]span{}, waiting: map[callKey]*heldCall{},
		early: map[callKey]*earlyCall{}, greeting: map[uint64]*greeting{},
		local: map[netip.AddrPort]bool{}, told: map[uint64]int{}, ordered: map[uint64]bool{}, readers: readers{},
		leaving: map[netip.AddrPort]int64{}, owned: map[uint32]int{}, idle: map[uint32]bool{},
	}
	b.looks.several = len(addressesOf(o.Nodes)) > 1
	if o.Whom != (Whom{}) {
		b.chosen = newChosen(o.Whom)
	}
	for _, n := range o.Nodes {
		if n.PID != 0 {
			b.serving[uint32(n.PID)] = n
		}
	}
	return b
}

// ports are all that the programs have to look at.
func (b *book) ports() []int {
	seen := map[int]bool{}
	var out []int
	for _, n := range b.Nodes {
		for _, p := range []int{int(n.Remote.Port()), n.Port} {
			if p != 0 && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// node finds the watched server of a connection.
func (b *book) node(server netip.AddrPort, role uint8, tgid uint32) (Node, bool) {
	for _, n := range b.Nodes {
		if role == roleServer && n.PID != 0 && n.PID == int(tgid) {
			return n, true
		}
	}
	for _, n := range b.Nodes {
		port := int(server.Port())
		switch {
		case server == n.Remote:
			return n, true
		case n.PID != 0 && (port == n.Port || port == int(n.Remote.Port())) && (role == roleClient &&
			local(server.Addr()) || role == roleServer && n.Port == 0):
			return n, true
		}
	}
	return Node{}, false
}

func local(a netip.Addr) bool { return a.IsLoopback() }

// serverOf is the process of a server, as its own end of a connection says, else as it was when the watch began.
func serverOf(role uint8, tgid uint32, n Node) int {
	if role == roleServer && tgid != 0 {
		return int(tgid)
	}
	return n.PID
}

// ends of a connection, whichever end saw it.
func endsOf(a *kernelAddr) (client, server netip.AddrPort) {
	l, r := addrPort(a.Laddr, a.Lport), addrPort(a.Raddr, a.Rport)
	if a.Role == roleServer {
		return r, l
	}
	return l, r
}

// takes reports whether an end of connections is to be written down.
func (b *book) takes(role uint8) bool { return b.Side == "" || b.Side == sideOf(role) }

func sideOf(role uint8) string {
	if role == roleServer {
		return recording.Server
	}
	return recording.Client
}

// learn remembers which process is at the client's end of a connection.
func (b *book) learn(role uint8, client netip.AddrPort, tgid uint32, comm string) {
	if role != roleClient || tgid == 0 {
		return
	}
	if comm == "" {
		comm = b.names[tgid]
	}
	if comm != "" {
		b.names[tgid] = comm
	}
	b.own(client, process{int(tgid), comm})
}

// conn books a connection that opened, closed, or tells how it does.
func (b *book) conn(e *kernelConnEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := b.node(server, e.Role, e.Tgid)
	if ok && e.Role == roleServer && e.Tgid != 0 {
		b.serving[e.Tgid] = n
	}
	if !b.takes(e.Role) {
		return
	}
	b.learn(e.Role, client, e.Tgid, comm(e.Comm))
	if !ok {
		return
	}
	b.underTLS(&e.Addr, e.Tgid, n)
	if e.Role == roleServer && client.Addr() != server.Addr() && b.remote != nil {
		b.remote()
		b.remote = nil
	}
	if e.Role == roleClient && client.Addr() != server.Addr() && b.parsed != nil {
		b.parsed()
		b.parsed = nil
	}
	if b.chosen != nil && b.ends[client].pid != b.self {
		b.chosen.used(e, client, [2]process{b.ends[client], {pid: serverOf(e.Role, e.Tgid, n)}}, b.Clock.Now())
	}
	d := recording.ConnDetail{
		Client: client.String(), PID: b.ends[client].pid, Comm: b.ends[client].comm,
		Side:  sideOf(e.Role),
		Calls: int64(e.Calls), InFlightNs: int64(e.InFlightNs), IdleNs: int64(e.Now - max(e.LastIn, e.LastOut)),
	}
	if e.Opened != 0 {
		d.AgeNs = int64(e.Now - e.Opened)
	}
	if e.Dialled != 0 && e.Opened > e.Dialled {
		d.DialNs = int64(e.Opened - e.Dialled)
	} else if e.Dialled != 0 && e.Opened == 0 && e.Type == evClose {
		d.DialNs = int64(e.Now - e.Dialled)
	}
	ev := recording.Event{TimeNs: b.time(e.Now), Source: recording.SourceTap, Subject: n.Address}
	switch e.Type {
	case evOpen:
		ev.Kind = recording.KindOpen
		delete(b.leaving, client) // the port is used again
		put(b, b.greeting, e.Conn, &greeting{
			node: n, client: client, side: d.Side, dialNs: d.DialNs,
			from: b.time(max(e.Opened-uint64(d.DialNs), 1)),
		})
	case evClose:
		ev.Kind = recording.KindClose
		d.Reason = closeReason(e)
		d.Waiting = int(e.Outstanding)
		if e.Op != 0 {
			d.Op, d.OpBytes = b.opOf(e.Op).name, int64(e.ReqBytes)
		}
		switch {
		case e.ClosedBy == 1:
			d.By = d.Side
		case e.ClosedBy == 2 && e.Role == roleServer:
			d.By = recording.Client
		case e.ClosedBy == 2:
			d.By = recording.Server
		}
		delete(b.greeting, e.Conn)
		delete(b.told, e.Conn)
		delete(b.ordered, e.Conn)
		b.leave(client, b.time(e.Now))
		if e.Role == roleClient {
			defer func() { delete(b.local, client) }()
		}
	case evStatus:
		b.usage(e, n)
		return
	}
	if b.ends[client].pid == b.self {
		return // slowpath's own
	}
	ev.Detail = recording.Detail(d)
	b.Sink.Event(ev)
}

// usage is how a client uses one of its connections, and that a server's end of one is watched; see docs/recording.md.
func (b *book) usage(e *kernelConnEvent, n Node) {
	client, _ := endsOf(&e.Addr)
	if b.ends[client].pid == b.self {
		return
	}
	subject := recording.ConnPrefix + client.String()
	if e.Role == roleServer {
		if e.Aligned != 0 && !b.ordered[e.Conn] {
			put(b, b.ordered, e.Conn, true)
			b.Sink.Snapshot(recording.Snapshot{
				TimeNs: b.time(e.Now), Source: recording.SourceTap, Subject: subject,
				Name: recording.SnapshotServed,
				Body: recording.Detail(recording.ConnEnds{Node: n.Address}),
			})
		}
		return
	}
	if p := b.ends[client]; b.told[e.Conn] != p.pid {
		put(b, b.told, e.Conn, p.pid)
		b.Sink.Snapshot(recording.Snapshot{
			TimeNs: b.time(e.Now), Source: recording.SourceTap, Subject: subject,
			Name: "ends",
			Body: recording.Detail(recording.ConnEnds{Node: n.Address, PID: p.pid, Comm: p.comm}),
		})
	}
	for name, v := range map[string]uint64{
		"calls": e.Calls, "in_flight_ns": e.InFlightNs, "idle_ns": e.IdleNs,
		"prompt": e.Prompt,
	} {
		b.Sink.Sample(recording.Sample{
			TimeNs: b.time(e.Now), Source: recording.SourceTap, Subject: subject, Name: name,
			Value: float64(v),
		})
	}
}

// retransmit books that TCP sent something again.
func (b *book) retransmit(e *kernelRetransEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := b.node(server, e.Addr.Role, 0)
	if !ok || !b.takes(e.Addr.Role) {
		return
	}
	s := span{b.time(resentAfter(e)), b.time(e.Now)}
	d := recording.RetransmitDetail{
		Client: client.String(), From: sideOf(e.Addr.Role), State: tcpState(e.State),
		Why: whyResent(e), Unacked: int64(e.Unacked), Total: int64(e.Total), Duplicates: int64(e.Dups),
	}
	if !d.Spurious() {
		list := append(b.resent[client], s)
		put(b, b.resent, client, list[max(0, len(list)-64):])
	}
	b.Sink.Event(recording.Event{
		TimeNs: s.from, DurationNs: s.to - s.from, Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindRetransmit, Detail: recording.Detail(d),
	})
}

// States of the sender's congestion control, include/uapi/linux/tcp.h.
const (
	caRecovery = 3
	caLoss     = 4
)

// whyResent is what made TCP send something again. Before a handshake is done there is the timer alone.
func whyResent(e *kernelRetransEvent) string {
	switch {
	case e.Why == caLoss || strings.Contains(tcpState(e.State), "syn"):
		return recording.ResentTimer
	case e.Why == caRecovery:
		return recording.ResentAcks
	}
	return recording.ResentProbe
}

// resentAfter is when what is sent again was sent, in the kernel's time. Where an end's sends are not followed, it is
// as long ago as its timer has waited, which doubles each time that it runs out (tcp_retransmit_timer); other reasons
// come sooner, and are taken for no time.
func resentAfter(e *kernelRetransEvent) uint64 {
	switch {
	case e.LastOut > 0:
		return min(e.LastOut, e.Now)
	case whyResent(e) == recording.ResentTimer:
		waited := uint64(e.RtoUs) * 1000 * (1<<(min(e.Backoff, 15)+1) - 1)
		return e.Now - min(e.Now, waited)
	}
	return e.Now
}

func tcpState(s uint8) string {
	names := []string{
		"", "established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2", "time-wait", "close",
		"close-wait", "last-ack", "listen", "closing", "new-syn-recv",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return ""
}

// greeting is a fresh connection's commands until the first that does work.
type greeting struct {
	node   Node
	client netip.AddrPort
	side   string
	dialNs int64
	from   int64
	ops    []string
	lib    string // name of the client library, by CLIENT SETINFO,
	ver    string // and its version
	trips  int
	last   int64 // end of the last
}

// handshakes are the commands by which clients introduce themselves.
var handshakes = map[string]bool{
	"AUTH": true, "HELLO": true, "SELECT": true, "READONLY": true, "CLIENT SETNAME": true,
	"CLIENT SETINFO": true,
	"CLIENT ID":      true, "CLIENT TRACKING": true, "COMMAND": true, "COMMAND DOCS": true, "CLIENT MAINT_NO": true,
	"PING": true, "INFO": true, "CLUSTER SLOTS": true,
	"CLUSTER SHARDS": true, "CLUSTER NODES": true, "ROLE": true,
}

// greet follows the first calls of a connection. An end that does not tell of each of them, as a client's whose
// server's end parses for both, has none to tell of.
func (b *book) greet(e *kernelCallEvent, call nodeOp, start, end int64) {
	g := b.greeting[e.Conn]
	if g == nil {
		return
	}
	if e.Number != uint64(len(g.ops))+1 {
		delete(b.greeting, e.Conn)
		return
	}
	ready := g.last
	if start >= g.last {
		g.trips++
	}
	g.last = max(g.last, end)
	op := call.name
	if handshakes[op] && len(g.ops) < 16 {
		g.ops = append(g.ops, op)
		switch said := strings.ToLower(call.said); {
		case said == "":
		case said[0] >= '0' && said[0] <= '9':
			g.ver = said
		default:
			g.lib = said
		}
		return
	}
	delete(b.greeting, e.Conn)
	p := b.ends[g.client]
	rest := max(start-max(ready, g.from+g.dialNs), 1)
	b.Sink.Event(recording.Event{
		TimeNs: g.from, DurationNs: end - g.from, Source: recording.SourceTap,
		Subject: g.node.Address, Kind: recording.KindHandshake,
		Detail: recording.Detail(recording.HandshakeDetail{
			Client: g.client.String(), PID: p.pid, Comm: p.comm,
			Side: g.side, DialNs: g.dialNs,
			Ops: g.ops, Library: g.lib, Version: g.ver, Trips: g.trips - 1, RestNs: rest, Op: op,
			Bytes: int64(e.ReqBytes),
		}),
	})
}

// culprit names what a server did, for people.
func culprit(op, client, process string) string {
	if op == "" {
		return "its own work"
	}
	s := strings.TrimSpace(op)
	if client != "" {
		s += " from " + client
	}
	if process != "" {
		s += " (" + process + ")"
	}
	return s
}
