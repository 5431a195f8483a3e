package probe

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/resp"
	"slowpath/internal/session"
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
	var free time.Time      // when the connection was last free: calls due before it waited for it
	var reconnect time.Time // since when there is no connection, zero where there is one
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
		for s == nil {
			if reconnect.IsZero() {
				reconnect = time.Now()
			}
			var err error
			if s, _, err = p.open(ctx); err == nil {
				break
			}
			s = nil
			if ctx.Err() != nil {
				p.unfinished(d, sched, reconnect)
				return nil
			}
			p.errorEvent(time.Now(), "connect", err)
			if !alarm.Sleep(reconnectPause) {
				p.unfinished(d, sched, reconnect)
				return nil
			}
		}
		retrans, _ := totalRetrans(s)
		free = p.call(ctx, s, d, callContext{free, reconnect, retrans})
		if ctx.Err() != nil && free.IsZero() {
			p.unfinished(d, sched, d.at)
			return nil
		}
		reconnect = time.Time{}
		if free.IsZero() { // broken
			s.Close()
			s, free = nil, time.Now()
		}
	}
}

// callContext is what a call must know of the connection it runs on.
type callContext struct {
	free      time.Time
	reconnect time.Time
	retrans   uint32
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
	c := recording.Call{Source: recording.SourceProbe, Conn: Kept, Op: args[0], ArgCount: len(args), RequestBytes: int64(t.RequestBytes), ReplyBytes: int64(t.ReplyBytes),
		IntendedNs: p.Clock.At(d.at), StartNs: p.Clock.At(t.Sent), EndNs: p.Clock.At(t.End), Node: p.Node, Slot: -1, Error: errText(err)}
	p.record(c, p.waits(c, cc, t))
	p.tcpInfo(s, c, cc.retrans)
	if err != nil && !isReply(err) {
		return time.Time{}
	}
	return t.End
}

// waits are the segments that the probe knows itself: before the send, and between the kernel's receipt of the reply and us.
func (p *prober) waits(c recording.Call, cc callContext, t session.Timing) []recording.Segment {
	var segs []recording.Segment
	at := c.IntendedNs
	// Time that a call waited for the one before it on this connection is left open: what held up the other held up this one.
	if !cc.reconnect.IsZero() {
		from := min(max(p.Clock.At(cc.reconnect), at), c.StartNs)
		segs = appendSegment(segs, recording.App, recording.Dial, from, c.StartNs, "reconnect")
		at = c.StartNs
	} else if !cc.free.IsZero() {
		at = max(at, min(p.Clock.At(cc.free), c.StartNs))
	}
	segs = appendSegment(segs, recording.Client, recording.RunQueue, at, c.StartNs, "slowpath")
	return appendSegment(segs, recording.Client, recording.RunQueue, c.EndNs-min(int64(t.ReadDelay), c.EndNs-c.StartNs), c.EndNs, "slowpath")
}

// unfinished records the calls that were due and had not come back when the watch ended.
func (p *prober) unfinished(d due, sched *slots, since time.Time) {
	now := time.Now()
	for ; d.at.Before(now); d.k, d.at = sched.next() {
		from := p.Clock.At(d.at)
		c := recording.Call{Source: recording.SourceProbe, Conn: Kept, Op: p.command(d.k)[0], Node: p.Node, Slot: -1,
			IntendedNs: from, StartNs: max(from, p.Clock.At(since)), EndNs: p.Clock.At(now), Error: Unfinished}
		p.record(c, nil)
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
