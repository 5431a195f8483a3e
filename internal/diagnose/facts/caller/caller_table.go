package caller

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// calling is who calls a node.
type calling struct {
	callers []*Caller
	ends    []*Conn // all clients' ends that the tap saw, also those of no caller
}

func callerTableOf(n *facts.Node) calling { return facts.Once(n, "callers", findCallers) }

func findCallers(n *facts.Node) calling {
	b := callerTable{
		node: n, byAddress: map[connEnd][]*Conn{}, apart: map[*Conn]bool{},
		leftOut: map[*Conn]bool{},
	}
	for e := range n.Rec.Conns(n.Address) {
		b.event(e)
	}
	for e := range n.Rec.Handshakes(n.Address) { // their time is that of the SYN, before the connection is open
		b.handshake(e)
	}
	b.slowHandshakes()
	b.samples()
	b.joinEnds()
	b.findApart()
	ends := slices.DeleteFunc(slices.Clone(b.all), func(c *Conn) bool { return c.Side != recording.Client })
	return calling{b.callers(), ends}
}

// callerTable collects the connections of a node. Where both ends of one are on this host, the client's end counts.
type callerTable struct {
	node      *facts.Node
	all       []*Conn
	byAddress map[connEnd][]*Conn // in order of time: later connections use an address again
	apart     map[*Conn]bool      // of other watches of the server
	// leftOut were not followed all the time: what is known of them would be taken for idleness. Only their calls
	// count.
	leftOut map[*Conn]bool
}

// connEnd is the end of a connection that saw it, and the client's address.
type connEnd struct{ side, client string }

// event adds the begin or the end of a connection.
func (b *callerTable) event(e recording.ConnEvent) {
	switch e.Kind {
	case recording.KindOpen:
		c := b.add(e.ConnDetail)
		c.OpenNs, c.DialNs = e.TimeNs, e.DialNs
	case recording.KindClose:
		d := e.ConnDetail
		if d.AgeNs == 0 && d.DialNs > 0 {
			return // the connect failed
		}
		list := b.byAddress[connEnd{d.Side, d.Client}]
		if len(list) == 0 || list[len(list)-1].CloseNs > 0 { // it was open before the watch
			list = append(list, b.add(d))
		}
		c := list[len(list)-1]
		c.CloseNs, c.Calls, c.InFlightNs, c.IdleNs, c.ClosedBy, c.Unanswered = e.TimeNs, d.Calls, d.InFlightNs,
			d.IdleNs, d.By, d.Waiting
		c.UnansweredOp, c.UnansweredBytes, c.UnansweredBlocking = d.Op, d.OpBytes, d.Blocking
		c.Nagle = d.Nagle
		c.CloseReason = d.Reason
		if d.By == recording.Server {
			c.ServerClosedNs, c.ServerClosedIdleNs, c.ServerClosedReason = e.TimeNs, d.IdleNs, d.Reason
		}
		if d.By == recording.Server && d.Side == recording.Client && d.NoticedNs > 0 {
			c.ServerClosedNs, c.ServerClosedIdleNs, c.ServerClosedReason = e.TimeNs-d.NoticedNs, d.PeerIdleNs, ""
			if d.PeerWaiting == 0 && !d.Blocking {
				c.Unanswered, c.SentLate = 0, d.Waiting
			}
		}
	}
}

// handshake adds the handshake of a new connection.
func (b *callerTable) handshake(e recording.HandshakeEvent) {
	for _, c := range b.byAddress[connEnd{e.Side, e.Client}] {
		if c.OpenNs >= e.TimeNs {
			d := e.HandshakeDetail
			c.Handshake, c.FirstReplyNs = &d, e.DurationNs
			return
		}
	}
}

// slowHandshakes adds the slow handshakes of connections that had no other command yet: a handshake is reported with
// the first command after it.
func (b *callerTable) slowHandshakes() {
	for _, call := range b.node.Rec.Calls {
		if call.Source != recording.SourceTap || call.Node != b.node.Address || !recording.Introduces(call.Op) {
			continue
		}
		for _, side := range []string{recording.Client, recording.Server} {
			for _, c := range b.byAddress[connEnd{side, call.Conn}] {
				if c.OpenNs > 0 && c.OpenNs <= call.EndNs && (c.CloseNs == 0 || call.StartNs < c.CloseNs) {
					c.SlowHandshakeEndNs = max(c.SlowHandshakeEndNs, call.EndNs)
				}
			}
		}
	}
}

// add begins a connection.
func (b *callerTable) add(d recording.ConnDetail) *Conn {
	c := &Conn{Client: d.Client, Side: d.Side, pid: d.PID, comm: d.Comm}
	end := connEnd{d.Side, d.Client}
	b.byAddress[end] = append(b.byAddress[end], c)
	b.all = append(b.all, c)
	return c
}

// samples adds the samples of open connections. Which process has a connection that was there before the watch is in a
// snapshot.
func (b *callerTable) samples() {
	rec := b.node.Rec
	for s, ends := range facts.Bodies[recording.ConnEnds](rec, recording.SourceTap, recording.SnapshotEnds,
		recording.ConnPrefix) {
		if ends.Node != b.node.Address {
			continue
		}
		c := b.clientsEnd(s.Subject, s.TimeNs)
		if c == nil {
			c = b.add(recording.ConnDetail{Client: s.Subject, Side: recording.Client, PID: ends.PID, Comm: ends.Comm})
		}
		if c.Nagle == "" {
			c.Nagle = ends.Nagle
		}
	}
	for _, c := range b.all {
		if c.Side != recording.Client {
			continue
		}
		c.UsedIn = rec
		if c.CloseNs > 0 {
			continue
		}
		if last, ok := c.LastSample(); ok {
			c.Calls, c.InFlightNs = last.Calls, last.InFlightNs
		}
	}
}

// joinEnds adds to connections within this host what only the server's end has, where the tap parses their
// bytes.
func (b *callerTable) joinEnds() {
	for _, c := range b.all {
		if c.Side != recording.Client {
			continue
		}
		s := b.otherEnd(c)
		if s == nil {
			continue
		}
		c.ClosedBetween = c.ClosedBy == recording.Server && s.ClosedBy == recording.Client
		// a proxy may send its FIN, and close the socket much later
		if finCame := c.ServerClosedNs > 0 && c.ServerClosedNs < s.ServerClosedNs; s.ServerClosedNs > 0 && !finCame {
			// the client's socket may stay open until the client reads from it
			c.ClosedBy, c.ServerClosedNs, c.ServerClosedIdleNs = recording.Server, s.ServerClosedNs,
				s.ServerClosedIdleNs
			c.ServerClosedReason = s.CloseReason
		}
		switch lastCameNs := s.CloseNs - s.IdleNs; {
		case s.Unanswered == 1 && c.ServerClosedNs > 0 && c.ServerClosedNs < lastCameNs:
			c.SentLate = 1 // the one request without a reply came after the FIN had gone out
		case s.Unanswered > c.Unanswered:
			c.Unanswered, c.IdleNs = s.Unanswered, s.IdleNs
		}
		if c.UnansweredOp == "" {
			c.UnansweredOp, c.UnansweredBytes = s.UnansweredOp, s.UnansweredBytes
		}
		c.UnansweredBlocking = c.UnansweredBlocking || s.UnansweredBlocking
		c.Calls, c.InFlightNs = max(c.Calls, s.Calls), max(c.InFlightNs, s.InFlightNs)
		if s.Handshake != nil && (c.Handshake == nil || len(s.Handshake.Ops) > len(c.Handshake.Ops)) {
			g := *s.Handshake
			g.Side, g.DialNs = recording.Client, c.DialNs
			c.Handshake, c.FirstReplyNs = &g, s.FirstReplyNs+c.DialNs
		}
	}
}

// otherEnd is the server's end of a connection: that of the same address which began closest to it.
func (b *callerTable) otherEnd(c *Conn) (best *Conn) {
	apart := func(s *Conn) int64 { return max(s.OpenNs-c.OpenNs, c.OpenNs-s.OpenNs) }
	for _, s := range b.byAddress[connEnd{recording.Server, c.Client}] {
		overlap := (c.CloseNs == 0 || s.OpenNs <= c.CloseNs) && (s.CloseNs == 0 || c.OpenNs <= s.CloseNs)
		if overlap && (best == nil || apart(s) < apart(best)) {
			best = s
		}
	}
	return best
}

// clientsEnd is that of the connection of an address that was open at a time; nil where it is not known.
func (b *callerTable) clientsEnd(address string, at int64) *Conn {
	for _, c := range b.byAddress[connEnd{recording.Client, address}] {
		if c.openAt(at) {
			return c
		}
	}
	return nil
}

// openAt reports whether it was open at a time.
func (c *Conn) openAt(at int64) bool { return c.OpenNs <= at && (c.CloseNs == 0 || c.CloseNs >= at) }

// findApart finds the connections that are no callers', or of which not enough is known.
func (b *callerTable) findApart() {
	kinds := map[string]map[*Conn]bool{recording.SnapshotObserver: b.apart, recording.SnapshotLeftOut: b.leftOut}
	for _, s := range b.node.Rec.Snapshots {
		found := kinds[s.Name]
		if s.Source != recording.SourceTap || found == nil {
			continue
		}
		address := strings.TrimPrefix(s.Subject, recording.ConnPrefix)
		for _, side := range []string{recording.Client, recording.Server} {
			for _, c := range b.byAddress[connEnd{side, address}] {
				if c.openAt(s.TimeNs) {
					found[c] = true
				}
			}
		}
	}
}

// assumeHandshakes: connections whose handshake was not recorded, as where too many are opened, made as many commands
// in it as most others of the caller.
func (c *Caller) assumeHandshakes() {
	times := map[int]int{}
	usual := 0
	for _, k := range c.Conns {
		if k.Handshake != nil {
			n := len(k.Handshake.Ops)
			if times[n]++; times[n] > times[usual] {
				usual = n
			}
		}
	}
	for _, k := range c.Conns {
		if k.Handshake == nil && k.OpenNs > 0 {
			k.handshakeCalls = usual
		}
	}
}

// callers groups the connections by process or host.
func (b *callerTable) callers() []*Caller {
	local, own := map[string]bool{}, hosts.OwnPIDs(b.node.Case)
	for _, c := range b.all {
		if c.Side == recording.Client {
			local[c.Client] = true
		}
	}
	byName := map[string]*Caller{}
	var out []*Caller
	for _, c := range b.all {
		if own[c.pid] || b.apart[c] || c.Side != recording.Client && local[c.Client] {
			continue
		}
		name := HostOf(c.Client)
		key := name
		if c.pid != 0 {
			key = strconv.Itoa(c.pid) // comm is the name of a thread, and threads of a JVM have different ones
		}
		caller := byName[key]
		if caller == nil {
			caller = &Caller{Name: name, PID: c.pid, Comm: c.comm}
			if c.pid == 0 {
				caller.HostName = HostNames(b.node.Case)[name]
			} else {
				caller.Comm = hosts.CommOf(b.node.Case, c.pid, c.comm)
				caller.Name = hosts.ProcessName(b.node.Case, c.pid, caller.Comm)
			}
			byName[key] = caller
			out = append(out, caller)
		}
		c.Owner = caller
		if b.leftOut[c] {
			caller.leftOutCalls += c.AppCalls()
			continue
		}
		caller.Conns = append(caller.Conns, c)
	}
	out = slices.DeleteFunc(out, func(c *Caller) bool { return len(c.Conns) == 0 })
	for _, c := range out {
		sort.SliceStable(c.Conns, func(i, j int) bool { return c.Conns[i].OpenNs < c.Conns[j].OpenNs })
		c.assumeHandshakes()
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].InFlightNs() > out[j].InFlightNs() })
	return out
}
