package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// IdleTimes is how long connections of a caller were idle, and what came then.
type IdleTimes struct {
	// Busy is the number of calls that were sent less than a second after the reply before them, or were the first.
	Busy int64
	// Idle are the longer times, and all that ended with the connection.
	Idle []IdleTime
}

// IdleTime is one of them.
type IdleTime struct {
	// Conn is the connection.
	*caller.Conn
	// Ns is how long the connection was idle, in nanoseconds; of UsedAgain in recordings of early versions up to
	// a second less: they have the sum of the idle times of each second.
	Ns int64
	// Then is what came.
	Then Then
	// AtNs is when the connection was closed, by the end that did so first, in nanoseconds since the Unix epoch; 0 for
	// UsedAgain.
	AtNs int64
	// Redial is the connection that a call waited for instead; nil where none did.
	Redial *caller.Conn
}

// Reason is how the end that closed it first did so: one of recording.Close…; empty for a FIN.
func (t IdleTime) Reason() string {
	if t.Then == ClosedByServer {
		return t.ServerClosedReason
	}
	return t.CloseReason
}

// SentInVain reports whether its client sent something after the other end had closed it.
func (t IdleTime) SentInVain() bool {
	return t.Then == ClosedByServer && (t.SentLate > 0 || t.WasReset() && t.CloseNs > t.ServerClosedNs)
}

// Then is what came after a connection was idle.
type Then string

const (
	UsedAgain       Then = "used-again"
	NoReply         Then = "no-reply"     // a call was sent, and the connection ended without its reply
	ResetWhenUsed   Then = "reset-in-use" // a call was sent, and a reset came in place of its reply
	ClosedByClient  Then = "closed-by-client"
	ClosedByServer  Then = "closed-by-server" // or by what the client takes for it: a proxy, a load balancer
	ClosedBetween   Then = "closed-between"   // each end was told that the other had closed it
	ClosedByNeither Then = "ended"            // TCP gave up, or it is not known who closed it
)

// IdleTimesOf are those of a caller's connections. What was used again is only known where the client's end was seen.
func IdleTimesOf(c *caller.Caller, startNs int64) (t IdleTimes) {
	for _, k := range c.Conns {
		t.add(caller.ConnTimeline{Conn: k, Caller: c.Name, StartNs: startNs})
	}
	t.findRedials(c)
	return t
}

// UsesSeen reports whether the client's end of any of its connections was seen.
func UsesSeen(c *caller.Caller) bool {
	return slices.ContainsFunc(c.Conns, func(k *caller.Conn) bool { return k.Side == recording.Client })
}

func (t *IdleTimes) add(l caller.ConnTimeline) {
	unanswered := l.CloseNs > 0 && l.Unanswered > 0 && !l.UnansweredBlocking
	sentNs := l.CloseNs - l.IdleNs // of the call without a reply, as far as the end that waited saw it
	last := caller.TimelineStep{Span: facts.Span{ToNs: l.OpenNs}}
	calls := int64(0)
	for s := range l.Steps() {
		calls += s.Calls
		switch {
		case s.LongestIdleNs < int64(degree.Long): // the first send after a longer time ends a step
			t.Busy += s.Calls
		case unanswered && s.ToNs >= sentNs-int64(degree.AtOnce), l.ServerClosedNs > 0 && s.ToNs > l.ServerClosedNs:
			t.Busy += s.Calls // the send that ended the step had no reply
		default:
			t.Busy += max(s.Calls-1, 0)
			t.Idle = append(t.Idle, IdleTime{Conn: l.Conn, Ns: s.LongestIdleNs, Then: UsedAgain})
		}
		last = s
	}
	if l.UsedIn != nil {
		t.Busy += max(l.Calls-calls, 0) // after the last sample
	}
	switch then, ns := ended(l); {
	case unanswered && l.WasReset():
		t.end(l, ResetWhenUsed, idleUntil(l, last, sentNs))
	case unanswered:
		t.end(l, NoReply, idleUntil(l, last, sentNs))
	case then != "":
		t.end(l, then, ns)
	}
}

// end adds the end of a connection.
func (t *IdleTimes) end(l caller.ConnTimeline, then Then, idleNs int64) {
	at := l.CloseNs
	if l.ServerClosedNs > 0 && (at == 0 || l.ServerClosedNs < at) {
		at = l.ServerClosedNs
	}
	t.Idle = append(t.Idle, IdleTime{Conn: l.Conn, Ns: idleNs, Then: then, AtNs: at})
}

// findRedials finds, for each connection that a call waited for, the one of the same process that was closed last
// before it was ready, and was not in use any more when it was dialled. Each closed one is found once.
func (t *IdleTimes) findRedials(c *caller.Caller) {
	closed := map[*caller.Caller][]*IdleTime{}
	slices.SortStableFunc(t.Idle, func(a, b IdleTime) int { return cmp.Compare(a.AtNs, b.AtNs) })
	for i := range t.Idle {
		if k := &t.Idle[i]; k.AtNs > 0 {
			closed[k.Owner] = append(closed[k.Owner], k)
		}
	}
	dialled := inNeed(c)
	slices.SortStableFunc(dialled,
		func(a, b *caller.Conn) int { return cmp.Compare(a.Opening().ToNs, b.Opening().ToNs) })
	before := map[*caller.Caller][]*IdleTime{} // closed before the dial, and not followed by one yet
	for _, d := range dialled {
		o, opening := d.Owner, d.Opening()
		for len(closed[o]) > 0 && closed[o][0].AtNs <= opening.ToNs {
			before[o], closed[o] = append(before[o], closed[o][0]), closed[o][1:]
		}
		for i := len(before[o]) - 1; i >= 0; i-- {
			if k := before[o][i]; k.Conn != d && k.AtNs-k.Ns <= opening.FromNs {
				k.Redial, before[o] = d, slices.Delete(before[o], i, i+1)
				break
			}
		}
	}
}

// idleUntil is how long the connection was idle when it sent the call that had no reply. Where nothing was sent since
// its last sample, or its begin, that is the time from there.
func idleUntil(l caller.ConnTimeline, last caller.TimelineStep, sentNs int64) int64 {
	if since := sentNs - last.ToNs; last.ToNs > 0 && since > int64(degree.Long) {
		return since
	}
	return l.IdleBefore(sentNs)
}

// ended is who closed the connection between calls, and how long after the last byte; empty where it stayed open.
func ended(l caller.ConnTimeline) (by Then, idleNs int64) {
	switch {
	case l.CloseNs == 0 && l.ServerClosedNs == 0 || l.UnansweredBlocking:
		return "", 0
	case l.ClosedBetween:
		return ClosedBetween, l.IdleNs
	case l.ServerClosedNs > 0:
		return ClosedByServer, l.ServerClosedIdleNs
	case l.ClosedBy == recording.Client:
		return ClosedByClient, l.IdleNs
	}
	return ClosedByNeither, l.IdleNs
}
