//go:build linux

package tap

import (
	"net/netip"

	"slowpath/internal/recording"
)

// callKey is a call as both ends of its connection know it: the client's end, and the sequence number of the byte after
// its request.
type callKey struct {
	client clientEnd
	server netip.AddrPort
	seq    uint32
}

// serverView is what the server's end saw of a call. It waits for the client's view, which is read a little later.
type serverView struct {
	call recording.Call
	segs []recording.Segment
	due  int64
}

// clientView is what the client's end saw of a call, when it comes before the server's view: its thread read the reply
// before the server's had left its send.
type clientView struct {
	event *kernelCallEvent
	call  recording.Call
	due   int64
}

// joinWithin is how long after the end of a call the view of one end waits for that of the other.
const joinWithin = int64(300e6)

// call records a call that was slow, or one of the sample.
func (r *recorder) call(e *kernelCallEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := r.nodeOf(&e.Addr, server, e.Tgid)
	if !ok {
		return
	}
	if e.Role == roleServer {
		r.serving[e.Tgid] = n
	}
	if !r.records(e.Role) {
		return
	}
	if r.Side != "" {
		e.Flags &^= flagPaired // what the other end knows
	}
	r.learnClient(e.Role, client, e.Tgid, comm(e.Comm))
	if e.Addr.Observer != notObserver {
		r.ownCall(n, e, client)
		return
	}
	r.reader(e)
	r.underTLS(&e.Addr, e.Tgid, n)
	op := r.opOf(e.Op)
	c := recording.Call{
		Source: recording.SourceTap, Conn: client.String(), Op: op.name, ArgCount: int(e.Args),
		RequestBytes: int64(e.ReqBytes), ReplyBytes: int64(e.RepBytes),
		IntendedNs: r.time(e.At[0]), StartNs: r.time(e.At[0]), EndNs: r.time(e.At[3]),
		Node: n.Address, Slot: -1, Side: sideOf(e.Role),
		Client: r.clients[client].String(), Seq: e.Seq,
	}
	r.followHandshake(e, op, c)
	r.adminCommand(e, c, n)
	// Fresh: reported only since its connection is new. Merged: its own times are not known.
	if e.Flags&(flagFresh|flagMerged) != 0 {
		return
	}
	k := callKey{client, server, e.Seq}
	if r.filter != nil && !r.selected(e, client, n) {
		delete(r.serverViews, k)
		return
	}
	if e.Flags&flagError != 0 {
		c.Error = "error reply"
	}
	if e.Flags&(flagSampled|flagBlocking) == 0 {
		r.addSlowCall(c, client)
	}
	if e.Role == roleServer {
		r.callAtServer(e, k, c)
	} else {
		r.callAtClient(e, k, c, n)
	}
}

// adminCommand records that a command changed the server: once, where both ends saw it. One that failed changed
// nothing.
func (r *recorder) adminCommand(e *kernelCallEvent, c recording.Call, n Node) {
	command, ok := recording.Administers(c.Op)
	if !ok || e.Flags&flagAdmin == 0 || e.Flags&flagError != 0 || e.Role == roleClient && r.Side == "" && r.serves(n) {
		return
	}
	r.Sink.Event(recording.Event{
		TimeNs: c.StartNs, DurationNs: c.EndNs - c.StartNs, Source: recording.SourceTap, Subject: c.Node,
		Kind:   recording.KindAdminCommand,
		Detail: recording.Detail(recording.AdminCommandDetail{Op: command, Client: c.Conn, Process: c.Client}),
	})
}

func (r *recorder) callAtServer(e *kernelCallEvent, k callKey, c recording.Call) {
	segs := r.serverSegments(e)
	switch {
	case e.Flags&flagBlocking != 0:
		r.Sink.Event(recording.Event{
			TimeNs: c.StartNs, DurationNs: c.EndNs - c.StartNs, Source: recording.SourceTap,
			Subject: c.Node, Kind: recording.KindBlockingCommand,
			Detail: recording.Detail(recording.BlockingCommandDetail{
				Op: c.Op, Client: c.Conn, Process: c.Client,
				Behind: int(e.Ahead) - 1,
			}),
		})
		if recording.AwaitsAcks(c.Op) {
			r.pass(c, segs)
		}
	case r.localClients[k.client]:
		r.serverViews[k] = &serverView{c, segs, c.EndNs + joinWithin}
		r.joinClientView(k)
	default:
		r.pass(c, segs)
	}
}

func (r *recorder) callAtClient(e *kernelCallEvent, k callKey, c recording.Call, n Node) {
	switch {
	case r.Side == "" && r.serverViews[k] == nil && e.Flags&flagPaired == 0 && r.serves(n):
		r.clientViews[k] = &clientView{e, c, c.EndNs + joinWithin}
	default:
		c, segs := r.joined(e, k, c)
		r.pass(c, segs)
	}
}

// joinClientView passes on a client's view that waited for the server's.
func (r *recorder) joinClientView(k callKey) {
	if v := r.clientViews[k]; v != nil {
		delete(r.clientViews, k)
		c, segs := r.joined(v.event, k, v.call)
		r.pass(c, segs)
	}
}

// serves reports whether the server's end of a node's connections was seen on this host.
func (r *recorder) serves(n Node) bool {
	for _, s := range r.serving {
		if s.Address == n.Address {
			return true
		}
	}
	return false
}

// pass records a call for good.
func (r *recorder) pass(c recording.Call, segs []recording.Segment) {
	if r.filter != nil {
		r.filter.summary.Matched++
	}
	segs = r.afterOpening(&c, segs)
	r.Sink.Call(c, segs...)
}

// selected decides whether a call is one of the selected processes. One that is not, and that both ends report, is
// counted at the client's.
func (r *recorder) selected(e *kernelCallEvent, client clientEnd, n Node) bool {
	server := serverOf(e.Role, e.Tgid, n)
	if e.Flags&flagPaired != 0 {
		server = int(e.Pair.Tgid)
	}
	is, known := r.filter.selects(r.clients[client], process{pid: server}, r.Clock.Now())
	if !is && (e.Role == roleClient || !r.localClients[client]) {
		r.filter.leaveOut(known)
	}
	if is {
		r.filter.countCalls(e.Role, e.Number, client, r.clients[client].pid != 0)
	}
	return is
}
