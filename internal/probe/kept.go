package probe

import (
	"context"
	"errors"
	"slices"
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
	var late lateness
	var refused bool // the server's reply to the last attempt was an error
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
				p.unfinished(d, sched, reconnect, refused)
				return nil
			}
			p.errorEvent(time.Now(), "connect", err)
			refused = isReply(err)
			if !alarm.Sleep(reconnectPause) {
				p.unfinished(d, sched, reconnect, refused)
				return nil
			}
		}
		retrans, _ := totalRetrans(s)
		free = p.call(ctx, s, d, callContext{free, reconnect, retrans, &late})
		if ctx.Err() != nil && free.IsZero() {
			p.unfinished(d, sched, d.at, false)
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
	late      *lateness
}

// lateness is when this process sent calls later than it could have: ordered stretches, in nanoseconds. Calls that were due meanwhile
// were as late by them.
type lateness [][2]int64

// since forgets what ended before a time, from which on calls are due.
func (l *lateness) since(ns int64) {
	*l = slices.DeleteFunc(*l, func(s [2]int64) bool { return s[1] <= ns })
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
	// Time that a call waited for the one before it on this connection is left open: what held up the other held up this one. That we were
	// late with the other is known.
	cc.late.since(at)
	if !cc.reconnect.IsZero() {
		from := min(max(p.Clock.At(cc.reconnect), at), c.StartNs)
		segs = appendSegment(segs, recording.App, recording.Dial, from, c.StartNs, "reconnect")
		at = c.StartNs
	} else if !cc.free.IsZero() {
		at = max(at, min(p.Clock.At(cc.free), c.StartNs))
		for _, l := range *cc.late {
			segs = appendSegment(segs, recording.Client, recording.RunQueue, max(l[0], c.IntendedNs), min(l[1], at), "slowpath")
		}
	}
	segs = appendSegment(segs, recording.Client, recording.RunQueue, at, c.StartNs, "slowpath")
	*cc.late = append(*cc.late, [2]int64{at, c.StartNs})
	return appendSegment(segs, recording.Client, recording.RunQueue, c.EndNs-min(int64(t.ReadDelay), c.EndNs-c.StartNs), c.EndNs, "slowpath")
}

// unfinished records the calls that were due and had not come back when the watch ended. Where the server refuses connections, that is what
// they waited for.
func (p *prober) unfinished(d due, sched *slots, since time.Time, refused bool) {
	now := time.Now()
	for ; d.at.Before(now); d.k, d.at = sched.next() {
		from := p.Clock.At(d.at)
		c := recording.Call{Source: recording.SourceProbe, Conn: Kept, Op: p.command(d.k)[0], Node: p.Node, Slot: -1,
			IntendedNs: from, StartNs: max(from, p.Clock.At(since)), EndNs: p.Clock.At(now), Error: Unfinished}
		var segs []recording.Segment
		if refused {
			segs = appendSegment(segs, recording.App, recording.Dial, c.StartNs, c.EndNs, "refused")
		}
		p.record(c, segs)
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
