//go:build linux

package tap

import (
	"net/netip"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

func itoa(n int) string { return strconv.Itoa(n) }

// callKey is a call as both ends of its connection know it: the client's end, and the sequence number of the byte after
// its request.
type callKey struct {
	client netip.AddrPort
	server netip.AddrPort
	seq    uint32
}

// heldCall is a server's view of a call that waits for the client's, which is read a little later.
type heldCall struct {
	call recording.Call
	segs []recording.Segment
	due  int64
}

// earlyCall is a client's view of a call that came before the server's: its thread read the reply before the server's
// had left its send.
type earlyCall struct {
	event *kernelCallEvent
	call  recording.Call
	due   int64
}

// joinWithin is how long after its end a server's view waits for the client's.
const joinWithin = int64(300e6)

// waiters are commands that wait because they are meant to.
var waiters = map[string]bool{
	"BLPOP": true, "BRPOP": true, "BLMOVE": true, "BRPOPLPUSH": true, "BZPOPMIN": true,
	"BZPOPMAX": true, "BLMPOP": true,
	"BZMPOP": true, "XREAD": true, "XREADGROUP": true, "WAIT": true, "WAITAOF": true,
}

// waits reports whether a command is meant to wait, alone or as the first of several in a turn under TLS.
func waits(op string) bool { return waiters[strings.TrimSuffix(op, several)] }

// call books a call that was slow, or one of the sample.
func (b *book) call(e *kernelCallEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := b.node(server, e.Role, e.Tgid)
	if !ok {
		return
	}
	if e.Role == roleServer {
		b.serving[e.Tgid] = n
	}
	if !b.takes(e.Role) {
		return
	}
	if b.Side != "" {
		e.Flags &^= flagPaired // what the other end knows
	}
	b.learn(e.Role, client, e.Tgid, comm(e.Comm))
	if b.ends[client].pid == b.self {
		b.served(n, e, client)
		return
	}
	b.reader(e)
	b.underTLS(&e.Addr, e.Tgid, n)
	asked := b.opOf(e.Op)
	op := asked.name
	start, end := b.time(e.At[0]), b.time(e.At[3])
	b.greet(e, asked, start, end)
	if e.Flags&flagFresh != 0 {
		return // reported only because its connection is fresh
	}
	if e.Flags&flagMerged != 0 {
		return // its own times are not known
	}
	k := callKey{client, server, e.Seq}
	if b.chosen != nil && !b.meant(e, client, n) {
		delete(b.waiting, k)
		return
	}
	c := recording.Call{
		Source: recording.SourceTap, Conn: client.String(), Op: op, ArgCount: int(e.Args),
		RequestBytes: int64(e.ReqBytes), ReplyBytes: int64(e.RepBytes),
		IntendedNs: start, StartNs: start, EndNs: end, Node: n.Address, Slot: -1, Side: sideOf(e.Role),
		Client: b.ends[client].String(), Seq: e.Seq,
	}
	if e.Flags&flagError != 0 {
		c.Error = "error reply"
	}
	if e.Flags&flagSampled == 0 && !waits(op) {
		b.waited(c, client)
	}
	if e.Role == roleServer {
		segs := b.serverSegments(e)
		if waits(op) && asleepAfter(e) > (end-start)/2 {
			b.Sink.Event(recording.Event{
				TimeNs: start, DurationNs: end - start, Source: recording.SourceTap,
				Subject: n.Address, Kind: recording.KindWaiter,
				Detail: recording.Detail(recording.WaiterDetail{
					Op: op, Client: c.Conn, Process: c.Client,
					Behind: int(e.Ahead) - 1,
				}),
			})
			return
		}
		if b.local[client] {
			b.waiting[k] = &heldCall{c, segs, end + joinWithin}
			b.late(k)
			return
		}
		b.pass(c, segs)
		return
	}
	if waits(op) {
		delete(b.waiting, k)
		return
	}
	if b.Side == "" && b.waiting[k] == nil && e.Flags&flagPaired == 0 && b.serves(n) {
		b.early[k] = &earlyCall{e, c, end + joinWithin}
		return
	}
	c, segs := b.joined(e, k, c)
	b.pass(c, segs)
}

// late passes on a client's view that waited for the server's.
func (b *book) late(k callKey) {
	if h := b.early[k]; h != nil {
		delete(b.early, k)
		c, segs := b.joined(h.event, k, h.call)
		b.pass(c, segs)
	}
}

// serves reports whether the server's end of a node's connections was seen on this host.
func (b *book) serves(n Node) bool {
	for _, s := range b.serving {
		if s.Address == n.Address {
			return true
		}
	}
	return false
}

// pass books a call for good.
func (b *book) pass(c recording.Call, segs []recording.Segment) {
	if b.chosen != nil {
		b.chosen.told.Matched++
	}
	b.Sink.Call(c, segs...)
}

// meant decides whether a call is to be passed on. One that is not, and that both ends tell of, is counted at the
// client's.
func (b *book) meant(e *kernelCallEvent, client netip.AddrPort, n Node) bool {
	server := serverOf(e.Role, e.Tgid, n)
	if e.Flags&flagPaired != 0 {
		server = int(e.Pair.Tgid)
	}
	is, known := b.chosen.takes(b.ends[client], process{pid: server}, b.Clock.Now())
	if !is && (e.Role == roleClient || !b.local[client]) {
		b.chosen.leave(known)
	}
	if is {
		b.chosen.had(e.Role, e.Number, client, b.ends[client].pid != 0)
	}
	return is
}
