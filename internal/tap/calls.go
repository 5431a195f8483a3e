//go:build linux

package tap

import (
	"net/netip"
	"strconv"

	"slowpath/internal/recording"
)

func itoa(n int) string { return strconv.Itoa(n) }

// callKey is a call as both ends of its connection know it: the client's end, and the sequence number of the byte after its request.
type callKey struct {
	client netip.AddrPort
	server netip.AddrPort
	seq    uint32
}

// heldCall is a server's view of a call that waits for the client's, which is read a little later.
type heldCall struct {
	node Node
	call recording.Call
	segs []recording.Segment
	due  int64
}

// joinWithin is how long after its end a server's view waits for the client's.
const joinWithin = int64(300e6)

// waiters are commands that wait because they are meant to.
var waiters = map[string]bool{"BLPOP": true, "BRPOP": true, "BLMOVE": true, "BRPOPLPUSH": true, "BZPOPMIN": true, "BZPOPMAX": true, "BLMPOP": true,
	"BZMPOP": true, "XREAD": true, "XREADGROUP": true, "WAIT": true, "WAITAOF": true}

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
		return // slowpath's own
	}
	b.reader(e)
	op := b.opOf(e.Op)
	start, end := b.time(e.At[0]), b.time(e.At[3])
	b.greet(e.Conn, op, start, end)
	if e.Flags&flagFresh != 0 {
		return // reported only because its connection is fresh
	}
	if e.Flags&flagMerged != 0 {
		return // its own times are not known
	}
	c := recording.Call{Source: recording.SourceTap, Conn: client.String(), Op: op, ArgCount: int(e.Args), RequestBytes: int64(e.ReqBytes), ReplyBytes: int64(e.RepBytes),
		IntendedNs: start, StartNs: start, EndNs: end, Node: n.Address, Slot: -1, Side: sideOf(e.Role), Client: b.ends[client].String(), Seq: e.Seq}
	if e.Flags&flagError != 0 {
		c.Error = "error reply"
	}
	k := callKey{client, server, e.Seq}
	if e.Role == roleServer {
		segs := b.serverSegments(e)
		if waiters[op] && asleepAfter(e) > (end-start)/2 {
			b.Sink.Event(recording.Event{TimeNs: start, DurationNs: end - start, Source: recording.SourceTap, Subject: n.Address, Kind: recording.KindWaiter,
				Detail: recording.Detail(recording.WaiterDetail{Op: op, Client: c.Conn, Process: c.Client, Behind: int(e.Ahead) - 1})})
			return
		}
		if b.local[client] {
			b.waiting[k] = &heldCall{n, c, segs, end + joinWithin}
			return
		}
		b.Sink.Call(c, segs...)
		return
	}
	if waiters[op] {
		delete(b.waiting, k)
		return
	}
	c, segs := b.joined(e, k, c)
	b.Sink.Call(c, segs...)
}
