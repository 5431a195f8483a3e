package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// Conn is a connection of a caller as the kernel saw it. Times in nanoseconds.
type Conn struct {
	Client          string // its address
	OpenNs          int64  // 0: before the watch
	CloseNs         int64  // 0: after it
	DialNs          int64
	Calls           int64 // answered, with those of its handshake
	InFlightNs      int64 // with a call in flight
	IdleNs          int64 // at its end: since the last byte
	AgeNs           int64 // at its end
	ClosedBy        string
	Unanswered      int    // calls without a reply at its end,
	UnansweredOp    string // the first of them, empty where unknown,
	UnansweredBytes int64  // and the length of its request
	// when the server, or what stands before it, closed it; 0: it did not. Its client may notice much later
	ServerClosedNs     int64
	ServerClosedIdleNs int64 // then: since the last byte
	Handshake          *recording.HandshakeDetail
	FirstReplyNs       int64 // from the SYN to the reply of the first command that does work
	SlowHandshakeEndNs int64 // end of the last slow command by which it introduced itself; 0: none was slow
	Samples            []ConnSample
}

// use is the state of a connection at a time, since it was first seen.
type ConnSample struct {
	TimeNs, Calls, InFlightNs, IdleNs int64
	BackToBack                        int64 // calls sent right after the reply before; -1: not counted
}

func connSamples(rec *recording.Recording, c *Conn) []ConnSample {
	subject := recording.ConnPrefix + c.Client
	calls, idle := rec.Series(recording.SourceTap, subject, "calls"), rec.Series(recording.SourceTap, subject,
		"idle_ns")
	prompt := rec.Series(recording.SourceTap, subject, "prompt")
	var out []ConnSample
	for _, p := range rec.Series(recording.SourceTap, subject, "in_flight_ns") {
		if p.TimeNs < c.OpenNs || c.CloseNs > 0 && p.TimeNs > c.CloseNs {
			continue // another connection of the same address
		}
		k, _ := calls.At(p.TimeNs)
		i, _ := idle.At(p.TimeNs)
		u := ConnSample{p.TimeNs, int64(k), int64(p.Value), int64(i), -1}
		if v, ok := prompt.At(p.TimeNs); ok {
			u.BackToBack = int64(v)
		}
		out = append(out, u)
	}
	return out
}

// Work is how many of the calls were asked for by the application.
func (c *Conn) AppCalls() int64 {
	if c.Handshake == nil {
		return c.Calls
	}
	return max(c.Calls-int64(len(c.Handshake.Ops)), 0)
}

// Trips are the round trips of its handshake.
func (c *Conn) HandshakeRoundTrips() int {
	if c.Handshake == nil {
		return 0
	}
	return max(c.Handshake.Trips, 0)
}

// OpeningNs is what the connection cost before its first command that does work: the dial, which the server's end does
// not see, and the round trips of the handshake.
func (c *Conn) OpeningNs() int64 {
	return c.DialNs + c.HandshakeRoundTripNs()*int64(c.HandshakeRoundTrips())
}

// Opening is the time from the dial of a connection to its first command that does work.
func (k *Conn) Opening() Span {
	from := k.OpenNs - k.DialNs
	to := from + max(k.OpeningNs(), 1)
	if k.Handshake == nil {
		to = max(to, k.SlowHandshakeEndNs)
	}
	return Span{from, to}
}

// TripNs is a round trip of its first ones; 0 where they were not seen.
func (c *Conn) HandshakeRoundTripNs() int64 {
	if c.Handshake == nil {
		return 0
	}
	return max(c.FirstReplyNs-c.DialNs-c.Handshake.RestNs, 0) / int64(c.HandshakeRoundTrips()+1)
}

// spentNs is the time that its caller spent on it. The server's end does not see how long calls are on their way.
func (c *Conn) spentNs() int64 {
	if c.Handshake != nil && c.Handshake.Side == recording.Server {
		return max(c.InFlightNs, c.OpeningNs()+c.AppCalls()*c.HandshakeRoundTripNs())
	}
	return c.DialNs + c.InFlightNs
}

// GaveUp: the client closed it while it waited for a reply.
func (c *Conn) ClosedWaiting() bool { return c.ClosedBy == recording.Client && c.Unanswered > 0 }

// PutAway: the client closed it between calls.
func (c *Conn) ClosedIdle() bool {
	return c.ClosedBy == recording.Client && c.Unanswered == 0 && c.AppCalls() > 0
}

// aheadTimes: a connection whose first call came later than this times its own round trips was opened ahead of it
// (MinIdleConns, a warm-up).
const maxFirstCallDelay = 2

// Ahead: it was open before a call wanted it. Its own round trips count as well as usual ones, since in a crowd they
// take longer.
func (k *Conn) OpenedAheadOfUse(callNs int64) bool {
	switch {
	case k.Handshake == nil:
		return false
	case k.Handshake.RestNs > 0:
		return k.Handshake.RestNs > (maxFirstCallDelay-1)*int64(k.HandshakeRoundTrips()+1)*max(callNs,
			k.HandshakeRoundTripNs())
	}
	// recorded before the rest was
	return k.FirstReplyNs-k.DialNs > maxFirstCallDelay*int64(k.HandshakeRoundTrips()+1)*callNs
}

// lastUse is when the last call of a connection ended, as far as is known: its use is looked at once a second.
func (k *Conn) lastUseNs() int64 {
	at := k.Opening().ToNs
	for i, u := range k.Samples {
		if i == 0 && u.Calls > 0 || i > 0 && u.Calls > k.Samples[i-1].Calls {
			at = max(at, u.TimeNs)
		}
	}
	return at
}

// rest is the time in which a pool would have given a connection to a caller instead of dialling. Next to its close,
// the pool may have been about to close it.
func (c *Conn) idleSpan() Span { return Span{c.CloseNs - c.IdleNs + minIdleNs, c.CloseNs - minIdleNs} }

// GreetingOf is the handshake that most of the connections began with.
func CommonHandshake(conns []*Conn) string {
	count, best := map[string]int{}, ""
	for _, k := range conns {
		if k.Handshake == nil {
			continue
		}
		s := strings.Join(k.Handshake.Ops, ", ")
		if count[s]++; count[s] > count[best] || count[s] == count[best] && s < best {
			best = s
		}
	}
	return best
}
