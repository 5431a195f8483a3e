package probe

import (
	"context"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
)

// fresh opens a connection in each slot, makes one call on it and closes it. Slow connections overlap, as those of many
// clients would.
func (p *prober) fresh(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close()
	sched := newSlots(p.Clock.Now(), p.FreshRate, p.Pace)
	inFlight := make(chan struct{}, maxFresh)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		p.leaveOutFresh(sched)
		d := sched.next()
		if !alarm.Sleep(time.Duration(d.atNs - p.Clock.Now())) {
			return nil
		}
		select {
		case inFlight <- struct{}{}:
			wg.Go(func() {
				p.freshCall(ctx, d.atNs)
				<-inFlight
			})
		default:
			p.missed(MissedConnections, 1)
		}
	}
}

// freshCall makes one call on a connection of its own, or one cycle.
func (p *prober) freshCall(ctx context.Context, dueNs int64) {
	if len(p.Steps) > 0 {
		p.freshCycle(ctx, dueNs)
		return
	}
	if f := p.openAndCall(ctx, dueNs, []string{"PING"}); f.session != nil {
		f.session.Close()
	}
}

// opened is a fresh connection with its first call.
type opened struct {
	recording.Call
	session *session.Session // nil: it could not be opened
	phases  session.Opening
	timing  session.Timing
	broken  bool // nothing more can be sent
}

// openAndCall opens a connection, makes a call on it, and records both as one call.
func (p *prober) openAndCall(ctx context.Context, dueNs int64, args []string) opened {
	begin := p.Clock.Now()
	s, o, err := p.open(ctx)
	c := recording.Call{
		Source: recording.SourceProbe, Conn: Fresh, Op: args[0], ArgCount: len(args), Node: p.Node, Slot: -1,
		IntendedNs: dueNs, StartNs: begin,
	}
	var t session.Timing
	if err == nil {
		_, t, err = s.DoTimed(ctx, args...)
		c.RequestBytes, c.ReplyBytes = int64(t.RequestBytes), int64(t.ReplyBytes)
	}
	c.EndNs = p.Clock.At(t.End)
	if t.End.IsZero() {
		c.EndNs = p.Clock.Now()
	}
	c.Error = errText(err)
	if err != nil && ctx.Err() != nil {
		c.Error = Unfinished
	}
	p.record(c, p.phases(c, o, t))
	if p.OnPhases != nil {
		p.OnPhases(map[string]time.Duration{
			"dns": o.DNS, "connect": o.Connect, "tls": o.TLS, "handshake": o.Handshake,
			"command": t.End.Sub(t.Sent),
		})
	}
	if err != nil && ctx.Err() == nil {
		p.errorEvent(c.EndNs, phaseOf(o), err)
	}
	if retrans := freshRetrans(s, o); o.SynRetrans > 0 || retrans > 0 {
		p.Sink.Event(recording.Event{
			TimeNs: c.EndNs, Source: recording.SourceProbe, Subject: p.Node,
			Kind: recording.KindTCPInfo,
			Detail: recording.Detail(recording.TCPDetail{
				CallStartNs: c.StartNs, Conn: Fresh,
				SynRetransDuring: o.SynRetrans, RetransDuring: retrans,
			}),
		})
	}
	return opened{c, s, o, t, err != nil && !(s != nil && isReply(err))}
}

// phases turns the phases of an opening into segments, one after the other.
func (p *prober) phases(c recording.Call, o session.Opening, t session.Timing) []recording.Segment {
	at := c.StartNs
	segs := appendSegment(nil, recording.Client, recording.RunQueue, c.IntendedNs, at, "slowpath")
	for _, ph := range []struct {
		state, culprit string
		d              time.Duration
	}{
		{recording.Dial, "dns", o.DNS},
		{recording.Dial, "connect", o.Connect},
		{recording.TLS, "", o.TLS},
		{recording.Handshake, "", o.Handshake},
	} {
		to := min(at+int64(ph.d), c.EndNs)
		if to > at {
			segs = append(segs, recording.Segment{
				Actor: recording.App, State: ph.state, FromNs: at, ToNs: to,
				Culprit: ph.culprit,
			})
		}
		at = to
	}
	return appendSegment(segs, recording.Client, recording.RunQueue, max(at, c.EndNs-int64(t.ReadDelay)), c.EndNs,
		"slowpath")
}

// phaseOf names the phase in which an opening ended.
func phaseOf(o session.Opening) string {
	switch {
	case o.Connect == 0:
		return "connect"
	case o.Handshake == 0:
		return "handshake"
	default:
		return "command"
	}
}
