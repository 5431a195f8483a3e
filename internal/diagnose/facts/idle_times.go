package facts

import "slowpath/internal/recording"

// IdleTimes is how long connections of a caller were idle, and what came then.
type IdleTimes struct {
	// Busy is the number of calls that were sent less than LongIdleNs after the reply before them, or were the first.
	Busy int64
	// Idle are the longer times, and all that ended with the connection.
	Idle []IdleTime
}

// IdleTime is one of them.
type IdleTime struct {
	// Ns is how long the connection was idle, in nanoseconds; of UsedAgain up to LongIdleNs less, as the kernel
	// programs sum up the idle times of each second.
	Ns int64
	// Then is what came.
	Then Then
}

// Then is what came after a connection was idle.
type Then string

const (
	UsedAgain       Then = "used-again"
	NoReply         Then = "no-reply" // a call was sent, and the connection ended without its reply
	ClosedByClient  Then = "closed-by-client"
	ClosedByServer  Then = "closed-by-server" // or by what the client takes for it: a proxy, a load balancer
	ClosedBetween   Then = "closed-between"   // each end was told that the other had closed it
	ClosedByNeither Then = "ended"            // TCP gave up, or it is not known who closed it
)

// IdleTimes are those of a caller's connections. What was used again is only known where the client's end was seen.
func (c *Caller) IdleTimes(startNs int64) (t IdleTimes) {
	for _, k := range c.Conns {
		t.add(ConnTimeline{Conn: k, caller: c.Name, startNs: startNs})
	}
	return t
}

// UsesSeen reports whether the use of any of its connections was seen.
func (c *Caller) UsesSeen() bool {
	for _, k := range c.Conns {
		if k.sampled() {
			return true
		}
	}
	return false
}

func (t *IdleTimes) add(l ConnTimeline) {
	unanswered := l.CloseNs > 0 && l.Unanswered > 0 && !l.unansweredBlocking
	sentNs := l.CloseNs - l.IdleNs // of the call without a reply, as far as the end that waited saw it
	last := TimelineStep{Span: Span{ToNs: l.OpenNs}}
	calls := int64(0)
	for s := range l.Steps() {
		calls += s.Calls
		switch {
		case s.IdleNs < LongIdleNs: // the first send after a longer time ends a step
			t.Busy += s.Calls
		case unanswered && s.ToNs >= sentNs-sampleLateNs:
			t.Busy += s.Calls
		default:
			t.Busy += max(s.Calls-1, 0)
			t.Idle = append(t.Idle, IdleTime{s.IdleNs, UsedAgain})
		}
		last = s
	}
	if l.samples != nil {
		t.Busy += max(l.Calls-calls, 0) // after the last sample
	}
	if unanswered {
		t.Idle = append(t.Idle, IdleTime{l.idleUntil(last, sentNs), NoReply})
	} else if then, ns := l.ended(); then != "" {
		t.Idle = append(t.Idle, IdleTime{ns, then})
	}
}

// idleUntil is how long the connection was idle when it sent the call that had no reply. Where nothing was sent since
// its last sample, or its begin, that is the time from there.
func (l ConnTimeline) idleUntil(last TimelineStep, sentNs int64) int64 {
	if since := sentNs - last.ToNs; last.ToNs > 0 && since > LongIdleNs {
		return since
	}
	return l.idleBefore(sentNs)
}

// ended is who closed the connection between calls, and how long after the last byte; empty where it stayed open.
func (l ConnTimeline) ended() (by Then, idleNs int64) {
	switch {
	case l.CloseNs == 0 && l.ServerClosedNs == 0 || l.unansweredBlocking:
		return "", 0
	case l.closedBetween:
		return ClosedBetween, l.IdleNs
	case l.ServerClosedNs > 0:
		return ClosedByServer, l.ServerClosedIdleNs
	case l.ClosedBy == recording.Client:
		return ClosedByClient, l.IdleNs
	}
	return ClosedByNeither, l.IdleNs
}
