package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
)

// keep makes calls on one connection that it keeps, and opens it again when it breaks.
func (p *prober) keep(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close()
	sched := newSlots(p.Clock.Now(), p.Rate, p.Pace)
	var s *session.Session
	free := int64(0) // when the connection was last free or opened: calls due before that waited for it
	var own delays
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for {
		p.leaveOut(sched, free, own)
		d := sched.next()
		if !alarm.Sleep(time.Duration(d.atNs - p.Clock.Now())) {
			return nil
		}
		own.forgetBefore(d.atNs)
		if s == nil {
			began := p.Clock.Now()
			own.late(d.atNs, free, began)
			if s = p.reopen(ctx, alarm, &own); s == nil {
				p.unfinished(d, sched, began, own)
				return nil
			}
			free = p.Clock.Now()
		}
		cc := callContext{conn: Kept, freeNs: free, own: &own}
		if len(p.Steps) > 0 {
			free = p.cycle(ctx, s, d, cc)
		} else {
			m := p.call(ctx, s, p.command(d.k), d.atNs, cc)
			if free = m.freeNs; free > 0 {
				sched.leaveRoom(free, m.EndNs-m.StartNs)
			}
		}
		if ctx.Err() != nil && free == 0 {
			p.unfinished(d, sched, d.atNs, own)
			return nil
		}
		if free == 0 { // broken
			s.Close()
			s, free = nil, p.Clock.Now()
		}
	}
}

// reopen opens the connection, again and again until it succeeds; nil where the watch ends before.
func (p *prober) reopen(ctx context.Context, alarm *clock.Alarm, own *delays) *session.Session {
	for {
		begin := p.Clock.Now()
		s, o, err := p.open(ctx)
		end := p.Clock.Now()
		wait := own.attempt(o, begin, end, isReply(err))
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		p.errorEvent(end, "connect", err)
		slept := alarm.Sleep(reconnectPause)
		wait.FromNs, wait.ToNs = end, p.Clock.Now()
		if own.add(wait); !slept {
			return nil
		}
	}
}

// callContext is what a call must know of the connection it runs on.
type callContext struct {
	conn   string // Kept or Fresh
	freeNs int64  // when it was free for this call
	own    *delays
}

// made is a call that was made.
type made struct {
	recording.Call
	timing session.Timing
	freeNs int64 // when the connection was free again, zero where it broke
}

// call makes one call, which was due at a time, and records it, unless the watch ended meanwhile.
func (p *prober) call(ctx context.Context, s *session.Session, args []string, dueNs int64, cc callContext) made {
	retrans, _ := totalRetrans(s)
	begin := p.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, t, err := s.DoTimed(ctx, args...)
	start, end := p.Clock.At(t.Sent), p.Clock.At(t.End)
	broken := err != nil && !isReply(err)
	if broken {
		if ctx.Err() != nil {
			return made{}
		}
		start, end = begin, p.Clock.Now()
		p.errorEvent(end, "command", err)
	}
	c := recording.Call{
		Source: recording.SourceProbe, Conn: cc.conn, Op: args[0], ArgCount: len(args),
		RequestBytes: int64(t.RequestBytes), ReplyBytes: int64(t.ReplyBytes),
		IntendedNs: dueNs, StartNs: start, EndNs: end, Node: p.Node, Slot: -1,
		Error: errText(err),
	}
	if len(p.Steps) == 0 && p.mayNotRead(args[0], err) {
		return made{c, t, end}
	}
	p.record(c, p.waits(c, cc, t))
	p.tcpInfo(s, c, retrans)
	if broken {
		end = 0
	}
	return made{c, t, end}
}

// mayNotRead reports that slowpath's own user may not GET, or that this server has no such command (a Sentinel). That
// is no fault: from then the probe only sends PING. Where a GET was served before, it is one.
func (p *prober) mayNotRead(op string, err error) bool {
	var refusal *resp.ServerError
	if op != "GET" || p.served || !errors.As(err, &refusal) || refusal.Code != "NOPERM" &&
		!strings.Contains(strings.ToLower(refusal.Message), "unknown command") {
		p.served = p.served || op == "GET" && err == nil
		return false
	}
	p.PingOnly = true
	p.Sink.Event(recording.Event{
		TimeNs: p.Clock.Now(), Source: recording.SourceProbe, Subject: p.Node, Kind: recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{
			What:   "calls that read a key (GET of a random key under slowpath:): slowpath only sends PING",
			Why:    "the server refused it: " + refusal.Code,
			Enable: p.Target.Grant("+get ~slowpath:*"),
		}),
	})
	return true
}

// waits are the segments that the probe knows itself: before the send, and between the kernel's receipt of the reply
// and this process. Time in which a call waited for the one before it on this connection is left open: what delayed the
// other call delayed this one, and the account finds it.
func (p *prober) waits(c recording.Call, cc callContext, t session.Timing) []recording.Segment {
	cc.own.late(c.IntendedNs, cc.freeNs, c.StartNs)
	cc.own.late(c.EndNs-min(int64(t.ReadDelay), c.EndNs-c.StartNs), 0, c.EndNs)
	return cc.own.within(c.IntendedNs, c.EndNs)
}

// unfinished records the calls that were due and had not come back when the watch ended.
func (p *prober) unfinished(d due, sched *slots, sinceNs int64, own delays) {
	now := p.Clock.Now()
	for ; d.atNs < now; d = sched.next() {
		c := recording.Call{
			Source: recording.SourceProbe, Conn: Kept, Op: p.first(d.k)[0], Node: p.Node, Slot: -1,
			IntendedNs: d.atNs, StartNs: max(d.atNs, sinceNs), EndNs: now, Error: Unfinished,
		}
		p.record(c, own.within(d.atNs, now))
		p.notMade(c, Unfinished, own)
	}
}

func (p *prober) record(c recording.Call, segs []recording.Segment) {
	felt := time.Duration(c.EndNs - c.IntendedNs - recording.OwnDelayNs(c, segs))
	p.Sink.Call(c, segs...)
	p.hists.add(c, felt)
	if p.OnCall != nil {
		p.OnCall(c, felt)
	}
}

// isReply reports whether an error is one that the server answered with: the call is over and was timed.
func isReply(err error) bool {
	var se *resp.ServerError
	return errors.As(err, &se)
}

// minSegment is the shortest wait worth a row.
const minSegment = int64(20 * time.Microsecond)

func appendSegment(segs []recording.Segment, actor, state string, from, to int64, culprit string) []recording.Segment {
	if to-from < minSegment {
		return segs
	}
	return append(segs, recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to, Culprit: culprit})
}
