//go:build linux

package tap

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// recorder turns the events of the programs into rows of the recording, and keeps what later events refer to.
type recorder struct {
	Options
	time   func(uint64) int64
	opOf   func(uint16) nodeOp
	filter *filter // nil: all calls are passed on
	// the nodes by the numbers that the programs have for them, beginning with 1
	numbered []Node

	// Processes and threads.
	names map[uint32]string // processes by number
	programs
	threads map[uint32]*threadLog // by thread
	serving map[uint32]Node       // nodes by the process that serves
	readers readers

	// Connections, by the address of their client, or by the number that the programs gave them.
	clients         map[clientEnd]process // at the clients' ends
	localClients    map[clientEnd]bool    // clients' ends on this host that are watched
	retransmissions map[clientEnd][]span
	handshakes      map[uint64]*handshake // under way
	opens           map[uint64]heldOpen   // that they opened is not recorded yet
	observers       map[uint64]bool       // of other observers, as the recording has it
	reportedPID     map[uint64]int        // process at the client's end, as the recording has it
	reportedChains  map[uint64]uint64     // how many chains of calls the recording has,
	// and how many transactions that failed
	reportedTransactions map[uint64]uint64
	ordered              map[uint64]bool // the recording has that the order of calls at their server's end is known

	// Calls.
	serverViews map[callKey]*serverView // that wait for the client's view of the same call
	clientViews map[callKey]*clientView // that wait for the server's
	lastOwnCall [3]uint64               // slowpath's own call that was recorded last: connection, begin and end
	snapshots   snapshots
	dnsQueries  map[dnsSocket]*dnsQuery // by socket
	dnsServers  map[netip.Addr]*dnsServer

	anyThreadReads map[int]bool // answers of DNS servers, by process
	waitLimit      waitLimit
	lockLimit      waitLimit // of waits for other threads: some show who is waited for
	sample         *connSample

	retention
	remoteCallers

	waited      map[waitedCalls]*recording.LatencyCounts // that are not recorded yet
	noReplies   map[clientEnd]bool                       // with a call that waits for its reply at the end
	failedDials map[uint32]*failedDials                  // by thread
	dialled     map[clientEnd]*dialled                   // of connections that made no call yet
	openings    map[callOnConn][]recording.Segment       // of connections that were opened for a call

	// functionIn is the function of a Go program itself in a stack; empty: that is not known.
	functionIn func(pid uint32, stack []uint64) string

	// Called when the events show that more is worth to be watched; nil: nobody wants to know.
	onCaller       func(pid uint32)                        // a process calls that was not known
	onUnread       func(pid uint32)                        // a client process leaves replies unread for long
	onTLS          func(a *kernelAddr, pid uint32, n Node) // a process speaks TLS with a node, or as one
	onRemoteClient func()                                  // there is a client on another host; called once
	onParsedClient func()                                  // there is a client whose own end is parsed; called once
}

// process is one with the client's end of a connection.
type process struct {
	pid     int
	comm    string // of the thread that used the connection
	program string // what it runs; empty where that is not known
}

func (p process) String() string {
	if p.pid == 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d]", cmp.Or(p.program, p.comm), p.pid)
}

func newRecorder(o Options, time func(uint64) int64, opOf func(uint16) nodeOp) *recorder {
	r := &recorder{
		Options: o, time: time, opOf: opOf,
		names: map[uint32]string{}, programs: programs{names: map[uint32]string{}}, threads: map[uint32]*threadLog{},
		serving: map[uint32]Node{}, readers: readers{},
		clients: map[clientEnd]process{}, localClients: map[clientEnd]bool{},
		retransmissions: map[clientEnd][]span{}, handshakes: map[uint64]*handshake{},
		reportedPID: map[uint64]int{}, reportedChains: map[uint64]uint64{},
		reportedTransactions: map[uint64]uint64{}, ordered: map[uint64]bool{},
		observers:   map[uint64]bool{},
		opens:       map[uint64]heldOpen{},
		noReplies:   map[clientEnd]bool{},
		failedDials: map[uint32]*failedDials{}, dialled: map[clientEnd]*dialled{},
		openings:    map[callOnConn][]recording.Segment{},
		waited:      map[waitedCalls]*recording.LatencyCounts{},
		serverViews: map[callKey]*serverView{}, clientViews: map[callKey]*clientView{},
		dnsQueries: map[dnsSocket]*dnsQuery{}, dnsServers: map[netip.Addr]*dnsServer{}, anyThreadReads: map[int]bool{},
		retention:     newRetention(),
		remoteCallers: remoteCallers{map[uint64]uint64{}, map[remoteHost]int64{}, map[remoteHost]bool{}},
	}
	r.sample = newConnSample(o.Budget, r.maxConns())
	if o.Processes != (ProcessFilter{}) {
		r.sample.selected = func(c clientEnd) bool { return r.filter.check(r.clients[c], r.Clock.Now()).selected }
	}
	r.snapshots.several = len(addressesOf(o.Nodes)) > 1
	for _, address := range addressesOf(o.Nodes) {
		r.numbered = append(r.numbered, o.Nodes[slices.IndexFunc(o.Nodes, func(n Node) bool {
			return n.Address == address
		})])
	}
	if o.Processes != (ProcessFilter{}) {
		r.filter = newFilter(o.Processes, o.Files)
	}
	for _, n := range o.Nodes {
		if n.PID != 0 {
			r.serving[uint32(n.PID)] = n
		}
	}
	return r
}

// ports are all that the programs have to watch.
func (r *recorder) ports() []int {
	seen := map[int]bool{}
	var out []int
	for _, n := range r.Nodes {
		for _, p := range []int{int(n.Remote.Port()), n.Port} {
			if p != 0 && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// nodeOf is the watched server of a connection, as the programs found it.
func (r *recorder) nodeOf(a *kernelAddr, server netip.AddrPort, tgid uint32) (Node, bool) {
	if n := int(a.Node); n > 0 && n <= len(r.numbered) {
		return r.numbered[n-1], true
	}
	return r.node(server, a.Role, tgid)
}

// node finds it by its addresses and its process.
func (r *recorder) node(server netip.AddrPort, role kernelRole, tgid uint32) (Node, bool) {
	for _, n := range r.Nodes {
		if role == roleServer && n.PID != 0 && n.PID == int(tgid) {
			return n, true
		}
	}
	for _, n := range r.Nodes {
		port := int(server.Port())
		switch {
		case server == n.Remote:
			return n, true
		case n.PID != 0 && (port == n.Port || port == int(n.Remote.Port())) && (role == roleClient &&
			server.Addr().IsLoopback() || role == roleServer && n.Port == 0):
			return n, true
		}
	}
	return Node{}, false
}

// serverOf is the process of a server, as its own end of a connection shows it, else as it was when the watch began.
func serverOf(role kernelRole, tgid uint32, n Node) int {
	if role == roleServer && tgid != 0 {
		return int(tgid)
	}
	return n.PID
}

// clientEnd is the client's end of a connection: its address, and where that is one of the server's host, the number of
// the network namespace, since another one may have the same address.
type clientEnd struct {
	netip.AddrPort
	net uint32
}

// endsOf a connection, whichever end saw it.
func endsOf(a *kernelAddr) (client clientEnd, server netip.AddrPort) {
	l, r := addrPort(a.Laddr, a.Lport), addrPort(a.Raddr, a.Rport)
	if a.Role == roleServer {
		l, r = r, l
	}
	if a.Laddr != a.Raddr {
		return clientEnd{AddrPort: l}, r
	}
	return clientEnd{l, a.Net}, r
}

// records reports whether what this end of connections saw is to be recorded.
func (r *recorder) records(role kernelRole) bool { return r.Side == "" || r.Side == sideOf(role) }

func sideOf(role kernelRole) string {
	if role == roleServer {
		return recording.Server
	}
	return recording.Client
}

// learnClient keeps which process has the client's end of a connection.
func (r *recorder) learnClient(role kernelRole, client clientEnd, tgid uint32, comm string) {
	if role != roleClient || tgid == 0 {
		return
	}
	if comm == "" {
		comm = r.names[tgid]
	}
	if comm != "" {
		r.names[tgid] = comm
	}
	r.readProgram(tgid)
	r.addClient(client, r.process(tgid))
}

// blind records during a watch that something cannot be seen.
func (o Options) blind(node, what, why, enable string) {
	o.Sink.Event(recording.Event{
		TimeNs: o.Clock.Now(), Source: recording.SourceTap, Subject: node, Kind: recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

// firstLine is an error without what the kernel said in detail.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
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
