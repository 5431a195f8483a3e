//go:build linux

package tap

import (
	"math/bits"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// conn records that a connection opened or closed, and how it is used.
func (r *recorder) conn(e *kernelConnEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := r.nodeOf(&e.Addr, server, e.Tgid)
	if ok && e.Role == roleServer && e.Tgid != 0 {
		r.serving[e.Tgid] = n
	}
	if !r.records(e.Role) {
		return
	}
	r.learnClient(e.Role, client, e.Tgid, comm(e.Comm))
	if !ok {
		return
	}
	r.underTLS(&e.Addr, e.Tgid, n)
	if client.Addr() != server.Addr() {
		r.otherHost(e.Role)
	}
	if e.Addr.Observer != notObserver {
		r.observer(e, client)
		return
	}
	if r.filter != nil {
		r.filter.conn(e, client, r.clients[client], process{pid: serverOf(e.Role, e.Tgid, n)}, r.Clock.Now())
	}
	r.countRemote(e, client, server, n)
	d := r.connDetail(e, client)
	kind := ""
	switch e.Type {
	case evOpen:
		kind = recording.KindOpen
		r.sample.opened(client)
		if e.Role == roleClient {
			r.dialledBy(e, client)
		}
		r.opened(e, client, n, d)
	case evClose:
		kind = recording.KindClose
		if e.Role == roleClient && e.Opened == 0 && e.Dialled != 0 {
			r.dialFailed(e.Tgid, e.Tid, r.time(e.Dialled), r.time(e.Now), server.String())
		}
		if r.sample.wasLeftOut(client) {
			e.Outstanding, e.Op, d.IdleNs = 0, 0, 0 // as they were when it was left out
		}
		r.sample.closed(client, e.Role)
		r.closed(e, client, &d)
		if e.Role == roleClient {
			delete(r.dialled, client)
			defer delete(r.localClients, client)
		}
	case evStatus:
		r.passOpen(e.Conn)
		r.usage(e, n)
		r.sample.seen(client, e.Role, r.clients[client].pid, e.Calls, r.time(e.Now))
		return
	}
	event := recording.Event{
		TimeNs: r.time(e.Now), Source: recording.SourceTap, Subject: n.Address, Kind: kind,
		Detail: recording.Detail(d),
	}
	if e.Type == evOpen {
		put(r, r.opens, e.Conn, heldOpen{event, r.time(e.Now) + joinWithin})
		return
	}
	r.passOpen(e.Conn)
	r.Sink.Event(event)
}

// heldOpen is that a connection opened. It is held until it is known whether it is one of an observer: that shows in
// its first commands.
type heldOpen struct {
	event recording.Event
	due   int64
}

// passOpen records that a connection opened, where that was held.
func (r *recorder) passOpen(conn uint64) {
	if h, held := r.opens[conn]; held {
		delete(r.opens, conn)
		r.Sink.Event(h.event)
	}
}

// otherHost has the programs watch what only connections between two addresses need.
func (r *recorder) otherHost(role kernelRole) {
	if role == roleServer && r.onRemoteClient != nil {
		r.onRemoteClient()
		r.onRemoteClient = nil
	}
	if role == roleClient && r.onParsedClient != nil {
		r.onParsedClient()
		r.onParsedClient = nil
	}
}

func (r *recorder) connDetail(e *kernelConnEvent, client clientEnd) recording.ConnDetail {
	d := recording.ConnDetail{
		Client: client.String(), PID: r.clients[client].pid, Comm: r.clients[client].comm,
		Side:  sideOf(e.Role),
		Calls: int64(e.Calls - e.NoCalls), InFlightNs: int64(e.InFlightNs),
		IdleNs: int64(e.Now - max(e.LastIn, e.LastOut)),
	}
	if e.Opened != 0 {
		d.AgeNs = int64(e.Now - e.Opened)
	}
	if e.Dialled != 0 && e.Opened > e.Dialled {
		d.DialNs = int64(e.Opened - e.Dialled)
	} else if e.Dialled != 0 && e.Opened == 0 && e.Type == evClose {
		d.DialNs = int64(e.Now - e.Dialled)
	}
	return d
}

func (r *recorder) opened(e *kernelConnEvent, client clientEnd, n Node, d recording.ConnDetail) {
	delete(r.ended, client) // the port is used again
	put(r, r.handshakes, e.Conn, &handshake{
		node: n, client: client, side: d.Side, dialNs: d.DialNs,
		from: r.time(max(e.Opened-uint64(d.DialNs), 1)),
	})
}

func (r *recorder) closed(e *kernelConnEvent, client clientEnd, d *recording.ConnDetail) {
	d.Reason = closeReason(e)
	d.By = closedBy(e)
	if e.PeerClosed != 0 {
		d.NoticedNs, d.PeerIdleNs, d.PeerWaiting = int64(e.Now-e.PeerClosed), int64(e.PeerIdleNs), int(e.PeerWaiting)
	}
	d.Waiting, d.Blocking, d.Nagle = int(e.Outstanding), e.Blocking != 0, nagleNames[e.Nagle]
	if e.Op != 0 {
		d.Op, d.OpBytes = r.opOf(e.Op).name, int64(e.ReqBytes)
	}
	r.chains(e, client)
	r.transactions(e, client)
	delete(r.handshakes, e.Conn)
	delete(r.reportedPID, e.Conn)
	delete(r.reportedChains, e.Conn)
	delete(r.reportedTransactions, e.Conn)
	delete(r.ordered, e.Conn)
	delete(r.remoteCalls, e.Conn)
	r.endConn(client, r.time(e.Now))
}

// nagleNames are what the recording says of a client's socket.
var nagleNames = map[kernelNagle]string{
	kernelNagleNAGLE_ON:  recording.NagleOn,
	kernelNagleNAGLE_OFF: recording.NagleOff,
}

// usage is how a client uses one of its connections, and that a server's end of one is watched; see docs/recording.md.
func (r *recorder) usage(e *kernelConnEvent, n Node) {
	client, _ := endsOf(&e.Addr)
	subject := recording.ConnPrefix + client.String()
	r.transactions(e, client)
	if e.Role == roleServer {
		if e.Aligned != 0 && !r.ordered[e.Conn] {
			put(r, r.ordered, e.Conn, true)
			r.Sink.Snapshot(recording.Snapshot{
				TimeNs: r.time(e.Now), Source: recording.SourceTap, Subject: subject,
				Name: recording.SnapshotServed,
				Body: recording.Detail(recording.ConnEnds{Node: n.Address}),
			})
		}
		return
	}
	if p := r.clients[client]; r.reportedPID[e.Conn] != p.pid {
		put(r, r.reportedPID, e.Conn, p.pid)
		r.Sink.Snapshot(recording.Snapshot{
			TimeNs: r.time(e.Now), Source: recording.SourceTap, Subject: subject,
			Name: "ends",
			Body: recording.Detail(recording.ConnEnds{
				Node: n.Address, PID: p.pid, Comm: p.comm, Nagle: nagleNames[e.Nagle],
			}),
		})
	}
	until := e.Now
	if e.Outstanding == 0 && e.LastIn != 0 { // it was not used since: the end of a watch reports all connections
		until = min(until, e.LastIn)
	}
	u := recording.ConnUse{
		TimeNs: r.time(until), Calls: int64(e.Calls - e.NoCalls), InFlightNs: int64(e.InFlightNs),
		IdleNs: int64(e.IdleNs), IdleMaxNs: int64(e.IdleMax), Prompt: int64(e.Prompt),
		Served: int64(bits.OnesCount64(e.Served)),
	}
	if e.Turns != 0 {
		u.Turns, u.Handed = int64(e.Turns), int64(e.Handed)
		u.WaitedNs, u.WaitedMaxNs, u.KeptNs = int64(e.WaitedNs), int64(e.WaitedMax), int64(e.KeptNs)
	}
	r.Sink.ConnUse(client.String(), u)
	r.chains(e, client)
}

// chains is how long a client made calls of one command one after the other on a connection, where there were more
// since the last time; see docs/recording.md.
func (r *recorder) chains(e *kernelConnEvent, client clientEnd) {
	if e.Chains.Count == r.reportedChains[e.Conn] {
		return
	}
	put(r, r.reportedChains, e.Conn, e.Chains.Count)
	values := map[series.Name]uint64{
		series.Chains: e.Chains.Count, series.ChainCalls: e.Chains.Calls, series.ChainTime: e.Chains.Ns,
		series.ChainInFlight: e.Chains.InFlightNs,
	}
	if op := r.opOf(uint16(e.Chains.Op)).name; op != "" {
		values[series.ChainsOf(op)] = e.Chains.Count
	}
	r.ofConn(e, client, values)
}

// ofConn records what was counted on a connection.
func (r *recorder) ofConn(e *kernelConnEvent, client clientEnd, values map[series.Name]uint64) {
	for of, v := range values {
		r.Sink.Sample(recording.Sample{
			TimeNs: r.time(e.Now), Source: of.Source, Subject: of.About(client.String()), Name: of.Name,
			Value: float64(v),
		})
	}
}

// transactions are those of a connection that watched keys, where more have failed since the last time; see
// docs/recording.md.
func (r *recorder) transactions(e *kernelConnEvent, client clientEnd) {
	t := e.Transactions
	if t.Failed == r.reportedTransactions[e.Conn] {
		return
	}
	put(r, r.reportedTransactions, e.Conn, t.Failed)
	r.ofConn(e, client, map[series.Name]uint64{
		series.Transactions: t.Done, series.TransactionsFailed: t.Failed, series.TransactionsFailedTime: t.FailedNs,
	})
}
