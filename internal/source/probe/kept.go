package probe

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
)

// due is a call that waits to be sent.
type due struct {
	k  int64
	at time.Time
}

// keep makes calls on one connection that it keeps, and opens it again when it breaks.
func (p *prober) keep(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close()
	sched := newSlots(p.Rate)
	var s *session.Session
	var free time.Time // when the connection was last free or opened: calls due before it waited for it
	var known past
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for {
		var d due
		d.k, d.at = sched.next()
		if !alarm.Sleep(time.Until(d.at)) {
			return nil
		}
		known.since(p.Clock.At(d.at))
		if s == nil {
			began := time.Now()
			known.late(p.Clock.At(d.at), p.Clock.At(free), p.Clock.At(began))
			if s = p.reopen(ctx, alarm, &known); s == nil {
				p.unfinished(d, sched, began, known)
				return nil
			}
			free = time.Now()
		}
		retrans, _ := totalRetrans(s)
		free = p.call(ctx, s, d, callContext{free, retrans, &known})
		if ctx.Err() != nil && free.IsZero() {
			p.unfinished(d, sched, d.at, known)
			return nil
		}
		if free.IsZero() { // broken
			s.Close()
			s, free = nil, time.Now()
		}
	}
}

// reopen opens the connection, again and again until it stands; nil where the watch ends before.
func (p *prober) reopen(ctx context.Context, alarm *clock.Alarm, known *past) *session.Session {
	for {
		begin := time.Now()
		s, o, err := p.open(ctx)
		end := time.Now()
		wait := known.attempt(o, p.Clock.At(begin), p.Clock.At(end), isReply(err))
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		p.errorEvent(end, "connect", err)
		slept := alarm.Sleep(reconnectPause)
		wait.FromNs, wait.ToNs = p.Clock.At(end), p.Clock.At(time.Now())
		if known.add(wait); !slept {
			return nil
		}
	}
}

// callContext is what a call must know of the connection it runs on.
type callContext struct {
	free    time.Time
	retrans uint32
	known   *past
}

// call makes one call and records it. It returns when the connection was free again, zero where it broke.
func (p *prober) call(ctx context.Context, s *session.Session, d due, cc callContext) time.Time {
	args := p.command(d.k)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, t, err := s.DoTimed(ctx, args...)
	if err != nil && !isReply(err) {
		if ctx.Err() != nil {
			return time.Time{}
		}
		p.errorEvent(time.Now(), "command", err)
		t.Sent, t.End = begin, time.Now()
	}
	c := recording.Call{
		Source: recording.SourceProbe, Conn: Kept, Op: args[0], ArgCount: len(args),
		RequestBytes: int64(t.RequestBytes), ReplyBytes: int64(t.ReplyBytes),
		IntendedNs: p.Clock.At(d.at), StartNs: p.Clock.At(t.Sent), EndNs: p.Clock.At(t.End), Node: p.Node, Slot: -1,
		Error: errText(err),
	}
	p.record(c, p.waits(c, cc, t))
	p.tcpInfo(s, c, cc.retrans)
	if err != nil && !isReply(err) {
		return time.Time{}
	}
	return t.End
}

// waits are the segments that the probe knows itself: before the send, and between the kernel's receipt of the reply
// and us. Time that a call waited for the one before it on this connection is left open: what held up the other held up
// this one, and the account lays it.
func (p *prober) waits(c recording.Call, cc callContext, t session.Timing) []recording.Segment {
	cc.known.late(c.IntendedNs, p.Clock.At(cc.free), c.StartNs)
	cc.known.late(c.EndNs-min(int64(t.ReadDelay), c.EndNs-c.StartNs), 0, c.EndNs)
	return cc.known.within(c.IntendedNs, c.EndNs)
}

// unfinished records the calls that were due and had not come back when the watch ended.
func (p *prober) unfinished(d due, sched *slots, since time.Time, known past) {
	now := time.Now()
	for ; d.at.Before(now); d.k, d.at = sched.next() {
		from := p.Clock.At(d.at)
		c := recording.Call{
			Source: recording.SourceProbe, Conn: Kept, Op: p.command(d.k)[0], Node: p.Node, Slot: -1,
			IntendedNs: from, StartNs: max(from, p.Clock.At(since)), EndNs: p.Clock.At(now), Error: Unfinished,
		}
		p.record(c, known.within(from, c.EndNs))
	}
}

func (p *prober) record(c recording.Call, segs []recording.Segment) {
	p.Sink.Call(c, segs...)
	p.hists.add(c)
	if p.OnCall != nil {
		p.OnCall(c)
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
