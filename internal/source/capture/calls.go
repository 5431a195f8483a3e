package capture

import (
	"bytes"
	"slices"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

const (
	maxWaitingConn = 10_000 // requests of a connection that wait for their reply
	maxTentative   = 64     // calls of a connection that wait until it is known that they are paired right
	// maxSpans are the retransmissions of a connection, and the times of its closed window, that are kept for the calls
	// under way.
	maxSpans = 16
	// sureExchanges: on a connection that was there before the capture it is not known which reply belongs to which
	// request, until so many requests that were sent while none waited had their replies, none sooner than a round
	// trip.
	sureExchanges = 4
	// calmNs: after so long a silence of its connection, within the capture, hardly a reply is due when a request
	// comes. One exchange is enough then, if no other reply follows until the next request, or the end: a client that
	// shares its connection may still wait for a server that hangs.
	calmNs = int64(1e9)
)

// calls are the requests and replies of a connection.
type calls struct {
	aligned   bool // it is known which reply belongs to which request
	exchanges int  // seen without contradiction while it is not
	afterCalm bool // and the first of them came after a silence
	clientOff bool // it is not known where a request begins
	serverOff bool // it is not known where a reply begins
	stream    bool // from now on the server sends by itself: SUBSCRIBE, MONITOR, PSYNC
	resp3     bool // the server has sent what is not in RESP2
	observer  bool // slowpath's own
	opened    bool // that it was opened is recorded
	noReply   replyMode
	waiting   []request
	tentative []call
	spans     []span // retransmissions
	shake     *handshake
	unacked   []unacked // replies

	beginNs int64 // of the request that arrives now,
	calm    bool  // which came after a silence,
	// silentNs is how long nothing was sent before the client's last segment, within the capture.
	silentNs int64
	firstNs  int64 // first byte of the reply that arrives now
	use      recording.ConnUse
	flownNs  int64  // until when time in flight is counted
	replyNs  int64  // end of the last reply
	callNs   int64  // time of the last call
	told     bool   // that this connection exists is recorded
	shut     []span // when the client's window was closed
}

// replyMode is what a client asked for by CLIENT REPLY.
type replyMode int

const (
	repliesOn replyMode = iota
	repliesOff
	skipNext
)

// request is a request that waits for its reply.
type request struct {
	op           *op
	fromNs, toNs int64  // its first and its last byte
	end          uint32 // sequence number of the byte after it
	args         int
	bytes        int64
	ackNs        int64 // when the server's kernel acknowledged it before there was a reply; 0: not
	blocking     bool
}

// call is a request with its reply.
type call struct {
	request
	firstNs, endNs int64 // first and last byte of the reply
	replyBytes     int64
	replyEnd       uint32
	err            string // first word of an error reply
	spans          []span // retransmissions
	shut           []span // when the client's window was closed
}

type span struct{ from, to int64 }

// bytes takes the next bytes of a direction, which are in order.
func (c *conn) bytes(h *half, b []byte, ns int64) {
	switch {
	case c.foreign || c.stream || c.ended:
	case h.client:
		c.requestBytes(b, ns)
	default:
		c.replyBytes(b, ns)
	}
}

func (c *conn) requestBytes(b []byte, ns int64) {
	f := c.client.frame
	if !c.aligned && (c.clientOff || !c.proven && !f.Started() && c.synNs == 0) {
		if !isRequest(b) && !isInline(b) {
			c.clientOff = true
			return
		}
		c.clientOff = false
		f.Reset()
	}
	if !c.proven && !f.Started() && !c.startsLikeClient(b) {
		return
	}
	at := c.client.next - uint32(len(b)) // of b
	for len(b) > 0 && !c.foreign && !c.stream {
		if !f.Started() {
			c.beginNs, c.calm = ns, c.silentNs >= calmNs
		}
		n, done, err := f.Feed(b)
		if err != nil {
			c.refuse()
			return
		}
		b, at = b[n:], at+uint32(n)
		if done {
			c.request(at, ns)
		}
	}
}

// abandon: this is no connection of RESP.
func (c *conn) abandon() {
	if !c.proven {
		c.foreign = true
		c.a.seen.foreign++
		c.drop()
		c.client.frame, c.server.frame = nil, nil
		return
	}
	c.loseOrder()
}

// refuse: bytes that are no RESP came where some should be.
func (c *conn) refuse() { c.abandon() }

// loseOrder: it is not known any more which reply belongs to which request.
func (c *conn) loseOrder() {
	c.beginAgain()
	c.aligned, c.clientOff, c.serverOff = false, true, true
	c.a.seen.unpaired += int64(len(c.waiting))
	c.forget()
	c.client.frame.Reset()
	c.server.frame.Reset()
	c.shake = nil
}

// forget forgets the calls that are under way.
func (c *conn) forget() {
	c.a.waiting -= len(c.waiting)
	c.waiting, c.tentative, c.spans, c.shut, c.unacked = nil, nil, nil, nil, nil
}

// drop forgets all that is under way.
func (c *conn) drop() {
	c.forget()
	for i := range c.ends {
		c.a.heldBytes -= c.ends[i].bytes
		c.ends[i].held, c.ends[i].bytes = nil, 0
	}
}

// lost passes over bytes of a direction that the capture does not have.
func (c *conn) lost(h *half, n int64) {
	if c.foreign || c.stream || c.ended || c.client == nil {
		return
	}
	switch done, ok := h.frame.Skip(n); {
	case ok && done && h.client:
		c.request(h.next, c.a.now)
		return
	case ok && done && h.frame.Kind() != resp.Push:
		c.reply(h.next, c.a.now)
		return
	case ok:
		return
	}
	if !h.client && !c.proven && len(c.waiting) > 0 {
		c.a.seen.oneWay += int64(len(c.waiting))
	}
	c.loseOrder()
}

// request takes a whole request, which ends before a sequence number.
func (c *conn) request(end uint32, ns int64) {
	f := c.client.frame
	if f.Args() == 0 {
		return // an empty line
	}
	name, sub := f.Arg(0), f.Arg(1)
	if f.Kind() == 0 {
		name, sub, _ = bytes.Cut(name, []byte(" "))
		sub, _, _ = bytes.Cut(sub, []byte(" "))
	}
	r := request{
		op: c.a.opOf(name, sub), fromNs: c.beginNs, toNs: ns, end: end, args: f.Args(), bytes: f.Bytes(),
	}
	r.blocking = r.op.blocking && (!strings.HasPrefix(r.op.name, "XREAD") || hasBlock(f))
	if c.special(r.op, f) {
		return
	}
	if len(c.waiting) == 0 {
		c.settleCalm()
		if !c.aligned { // a new beginning
			if c.exchanges++; c.exchanges == 1 {
				c.afterCalm = c.calm
			}
			c.serverOff = false
			c.server.frame.Reset()
		}
		c.begins(r.fromNs)
	}
	if len(c.waiting) >= maxWaitingConn || c.a.waiting >= maxWaiting {
		c.loseOrder()
		return
	}
	c.waiting = append(c.waiting, r)
	c.a.waiting++
}

// hasBlock reports whether XREAD or XREADGROUP waits: it has the option BLOCK.
func hasBlock(f *resp.Framer) bool {
	for i := 1; i < min(f.Args(), resp.KeptArgs); i++ {
		switch arg := f.Arg(i); {
		case bytes.EqualFold(arg, []byte("BLOCK")):
			return true
		case bytes.EqualFold(arg, []byte("STREAMS")):
			return false
		}
	}
	return false
}

// special follows the commands that change what replies there are, and reports whether this one has none.
func (c *conn) special(o *op, f *resp.Framer) bool {
	switch o.name {
	case "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		if c.resp3 {
			return true // it is answered by pushes, as SUBSCRIBE is
		}
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		if !c.resp3 {
			c.streams()
		}
		return true
	case "MONITOR", "SYNC", "PSYNC", "REPLCONF":
		c.streams()
		return true
	case "CLIENT SETNAME":
		name := strings.ToLower(string(f.Arg(2)))
		c.observer = c.observer || name == "slowpath" || name == "slowpath-watch" || name == "slowpath-topology"
	case "CLIENT REPLY":
		switch strings.ToUpper(string(f.Arg(2))) {
		case "ON":
			c.noReply = repliesOn
			return false
		case "OFF":
			c.noReply = repliesOff
		case "SKIP":
			c.noReply = skipNext
		}
		return true
	case "CLIENT SETINFO":
		if c.shake != nil {
			c.shake.setInfo(f.Arg(2), f.Arg(3))
		}
	}
	if c.noReply == skipNext {
		c.noReply = repliesOn
		return true
	}
	return c.noReply == repliesOff
}

// streams: from now on either end sends by itself, as to subscribers and replicas.
func (c *conn) streams() {
	c.stream = true
	c.a.seen.subscribed++
	c.a.seen.unpaired += int64(len(c.waiting) + len(c.tentative))
	c.drop()
}

func (c *conn) replyBytes(b []byte, ns int64) {
	f := c.server.frame
	if !c.aligned && !f.Started() && isRequest(b) { // both ends send requests: a primary and its replica
		c.streams()
		return
	}
	if len(c.waiting) == 0 && !c.aligned {
		c.beginAgain() // a reply to a request that was not seen
		return
	}
	if c.serverOff {
		return
	}
	at := c.server.next - uint32(len(b))
	for len(b) > 0 && !c.foreign && !c.serverOff {
		if !f.Started() {
			c.firstNs = ns
		}
		n, done, err := f.Feed(b)
		if err != nil {
			c.refuse()
			return
		}
		b, at = b[n:], at+uint32(n)
		if !done {
			continue
		}
		c.resp3 = c.resp3 || f.Kind() == resp.Map || f.Kind() == resp.Push // HELLO 3 is answered by a map
		if f.Kind() != resp.Push {
			c.reply(at, ns)
		}
	}
}

// reply takes a whole reply: that to the request which has waited longest.
func (c *conn) reply(end uint32, ns int64) {
	if len(c.waiting) == 0 {
		c.refuse()
		return
	}
	r := c.waiting[0]
	c.waiting = c.waiting[1:]
	c.a.waiting--
	if !c.aligned && c.node != nil && c.firstNs-r.toNs < c.node.toServerNs*3/4 {
		// sooner than a round trip: it answers a request before that
		c.a.seen.unpaired++
		c.beginAgain()
		return
	}
	f := c.server.frame
	k := call{request: r, firstNs: c.firstNs, endNs: ns, replyBytes: f.Bytes(), replyEnd: end}
	if f.Kind().IsError() {
		word, _, _ := bytes.Cut(f.Arg(0), []byte(" "))
		k.err = string(word)
	}
	k.spans, k.shut = during(c.spans, r.fromNs, ns), during(c.shut, r.fromNs, ns)
	if len(c.waiting) == 0 {
		c.spans, c.shut = nil, nil
	}
	c.answered()
	if !c.aligned {
		c.tentative = append(c.tentative, k)
		if len(c.tentative) > maxTentative {
			c.a.seen.unpaired++
			c.tentative = slices.Delete(c.tentative, 0, 1)
		}
		c.settle(sureExchanges)
		return
	}
	c.take(k)
}

// answered: the server has answered a request.
func (c *conn) answered() {
	if c.proven {
		return
	}
	c.proven = true
	c.a.seen.conns++
	if c.node == nil {
		c.node = c.a.nodeAt(c.server.address)
	}
	if c.node == nil {
		c.a.seen.unfollowed++
		c.abandonFull()
		return
	}
	c.node.proven = true
	c.node.hasClient(c.client.address.Addr())
}

// abandonFull: there are too many servers.
func (c *conn) abandonFull() {
	c.proven = false
	c.abandon()
}

// beginAgain: the exchanges so far show nothing.
func (c *conn) beginAgain() {
	c.a.seen.unpaired += int64(len(c.tentative))
	c.exchanges, c.tentative = 0, nil
}

// settleCalm settles exchanges that began after a silence, and that no other reply followed.
func (c *conn) settleCalm() {
	if c.afterCalm {
		c.settle(1)
	}
}

// settle decides whether the order of calls is known, once every request has been answered: after so many exchanges.
func (c *conn) settle(enough int) {
	if c.aligned || c.foreign || len(c.waiting) > 0 || c.exchanges < enough || c.server.frame.Started() ||
		c.client.frame.Started() {
		return
	}
	c.aligned = true
	for _, k := range c.tentative {
		c.take(k)
	}
	c.tentative = nil
}

// during are the spans that overlap a time.
func during(all []span, from, to int64) (out []span) {
	for _, s := range all {
		if s.from < to && s.to > from {
			out = append(out, s)
		}
	}
	return out
}

// resent takes a retransmission.
func (c *conn) resent(h *half, r retransmission) {
	if len(c.spans) < maxSpans && r.toNs > r.fromNs {
		c.spans = append(c.spans, span{r.fromNs, r.toNs})
	}
	if c.node != nil && !c.observer {
		c.a.retransmit(c, h, r, "established")
	}
	for i := range c.unacked {
		if !h.client {
			c.unacked[i].resent++
		}
	}
}

// bareAck takes an acknowledgement without data by the server's kernel.
func (c *conn) bareAck(p *packet) {
	if c.server.dataNs > 0 && c.server.frame != nil && c.server.frame.Started() {
		return // within a reply
	}
	for i := range c.waiting {
		r := &c.waiting[i]
		if r.ackNs == 0 && behind(r.end, p.ack) >= 0 {
			r.ackNs = p.ns
		}
	}
}
