package caller

import (
	"iter"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Conn is a connection of a caller as the kernel saw it. Its times are in nanoseconds.
type Conn struct {
	// Client is the address of the client's end.
	Client string
	// OpenNs is when it was made; 0 for before the watch.
	OpenNs int64
	// CloseNs is when it was closed; 0 for after the watch.
	CloseNs int64
	// DialNs is how long the connect took.
	DialNs int64
	// Calls is the number of calls that were answered, those of its handshake included.
	Calls int64
	// InFlightNs is the time with a call in flight.
	InFlightNs int64
	// IdleNs is the time from its last byte to its end.
	IdleNs int64
	// ClosedBy is the end that closed it: recording.Client or recording.Server.
	ClosedBy string
	// CloseReason is how it ended: one of recording.Close…; empty where both ends sent a FIN.
	CloseReason string
	// Unanswered is the number of calls without a reply at its end, without those of SentLate.
	Unanswered int
	// SentLate is the number of calls that were sent on it after the other end had closed it: they failed.
	SentLate int
	// UnansweredOp is the first of them; empty where it is unknown.
	UnansweredOp string
	// UnansweredBytes is the length of the request of UnansweredOp.
	UnansweredBytes int64
	// unansweredBlocking says that it waits by design.
	UnansweredBlocking bool
	// Nagle is recording.NagleOn or NagleOff, by the client's socket; empty where that was not seen.
	Nagle string
	// ServerClosedNs is when the server, or a proxy before it, closed the connection; 0 where it did not. The client
	// may notice much later.
	ServerClosedNs int64
	// ServerClosedIdleNs is the time from the last byte to ServerClosedNs.
	ServerClosedIdleNs int64
	// serverClosedReason is how the server closed it, as CloseReason.
	ServerClosedReason string
	// closedBetween says that each end was told that the other had closed it: something on the path did.
	ClosedBetween bool
	// Handshake is its handshake; nil where it was not seen.
	Handshake *recording.HandshakeDetail
	// FirstReplyNs is the time from the SYN to the reply of the first command of the application.
	FirstReplyNs int64
	// SlowHandshakeEndNs is the end of the last slow command of its handshake; 0 where none was slow.
	SlowHandshakeEndNs int64

	handshakeCalls int // commands that its handshake had, where it was not seen

	Side   string // which end saw it: recording.Client or Server
	pid    int    // of the process at the client's end; 0 where it is not on this host
	comm   string
	Owner  *Caller              // the process or host whose connection it is
	UsedIn *recording.Recording // that has the samples of its use; nil where its client's end was not seen
}

// Samples are the samples of its use, in order of time, without those of other connections of the same address.
func (c *Conn) Samples() iter.Seq[recording.ConnUse] {
	return func(yield func(recording.ConnUse) bool) {
		if c.UsedIn == nil {
			return
		}
		for u := range c.UsedIn.ConnUses(c.Client) {
			if c.openAt(u.TimeNs) && !yield(u) {
				return
			}
		}
	}
}

// Sampled reports whether it has samples.
func (c *Conn) Sampled() bool {
	_, ok := c.LastSample()
	return ok
}

// LastSample is the last of its samples; false where there is none.
func (c *Conn) LastSample() (last recording.ConnUse, ok bool) {
	for u := range c.Samples() {
		last, ok = u, true
	}
	return last, ok
}

// EndsOf are the first and the last of some values, and whether there are at least two.
func EndsOf[T any](values iter.Seq[T]) (first, last T, ok bool) {
	n := 0
	for v := range values {
		if n == 0 {
			first = v
		}
		last = v
		n++
	}
	return first, last, n > 1
}

// AppCalls is the number of calls that the application asked for: all but those of the handshake.
func (c *Conn) AppCalls() int64 {
	own := c.handshakeCalls
	if c.Handshake != nil {
		own = len(c.Handshake.Ops)
	}
	return max(c.Calls-int64(own), 0)
}

// HandshakeRoundTrips is the number of round trips of the handshake.
func (c *Conn) HandshakeRoundTrips() int {
	if c.Handshake == nil {
		return 0
	}
	return max(c.Handshake.RoundTrips, 0)
}

// tlsNs is the time of its TLS handshake that its client waited for the server, in nanoseconds.
func (c *Conn) tlsNs() int64 {
	if c.Handshake == nil {
		return 0
	}
	return max(c.Handshake.TLSNs, 0)
}

// OpeningNs is what the connection cost before the first command of the application, in nanoseconds: the dial, which
// the server's end does not see, the TLS handshake, and the round trips of the handshake.
func (c *Conn) OpeningNs() int64 {
	return c.DialNs + c.tlsNs() + c.HandshakeRoundTripNs()*int64(c.HandshakeRoundTrips())
}

// Opening is the time from the dial to the first command of the application.
func (k *Conn) Opening() facts.Span {
	from := k.OpenNs - k.DialNs
	to := from + max(k.OpeningNs(), 1)
	if k.Handshake == nil {
		to = max(to, k.SlowHandshakeEndNs)
	}
	return facts.Span{FromNs: from, ToNs: to}
}

// HandshakeRoundTripNs is the mean round trip of the handshake in nanoseconds; 0 where it was not seen.
func (c *Conn) HandshakeRoundTripNs() int64 {
	if c.Handshake == nil {
		return 0
	}
	return max(c.FirstReplyNs-c.DialNs-c.tlsNs()-c.Handshake.IdleNs, 0) / int64(c.HandshakeRoundTrips()+1)
}

// spentNs is the time in nanoseconds that its caller spent on it. The server's end does not see the time that calls
// take on the path.
func (c *Conn) spentNs() int64 {
	if c.Handshake != nil && c.Handshake.Side == recording.Server {
		return max(c.InFlightNs, c.OpeningNs()+c.AppCalls()*c.HandshakeRoundTripNs())
	}
	return c.DialNs + c.InFlightNs
}

// WasReset reports whether its client's end was reset.
func (c *Conn) WasReset() bool {
	return c.Side == recording.Client && c.CloseReason == recording.CloseReset
}

// Lost is the number of calls that were sent on it and had no reply.
func (c *Conn) Lost() int { return c.Unanswered + c.SentLate }

// ClosedWaiting reports whether the client closed it while it waited for a reply: a call timed out, or its program
// ended. A wait by design is not given up: its consumer ends.
func (c *Conn) ClosedWaiting() bool {
	return c.ClosedBy == recording.Client && c.Unanswered > 0 && !c.UnansweredBlocking &&
		!facts.BlockingCommands[c.UnansweredOp]
}

// ClosedIdle reports whether the client closed it between calls.
func (c *Conn) ClosedIdle() bool {
	return c.ClosedBy == recording.Client && c.Unanswered == 0 && c.AppCalls() > 0
}

// OpenedAheadOfUse reports whether it was open before a call needed it (MinIdleConns, a warm-up): its first call came
// several times as late as its handshake took. That counts as well as the caller's mean of callNs, since round trips
// take longer when many connections are opened at a time.
func (k *Conn) OpenedAheadOfUse(callNs int64) bool {
	return k.Handshake != nil && k.Handshake.IdleNs >
		degree.Several*int64(k.HandshakeRoundTrips()+1)*max(callNs, k.HandshakeRoundTripNs())
}

// LastUseNs is when the last call of a connection ended, as far as its samples, one per second, show it.
func (k *Conn) LastUseNs() int64 {
	at := k.Opening().ToNs
	calls := int64(0)
	for u := range k.Samples() {
		if u.Calls > calls {
			at = max(at, u.TimeNs)
		}
		calls = u.Calls
	}
	return at
}

// MinIdleNs is the time since the last call from which a connection was idle: a task whose answer a person takes for
// immediate does not hold one for longer between two calls.
const MinIdleNs = facts.HealthyMaxNs

// IdleSpan is the time in which a pool would have given a closed connection to a caller instead of dialling. Right
// before the close, the pool may have been about to close it.
func (c *Conn) IdleSpan() facts.Span {
	return facts.Span{FromNs: c.CloseNs - c.IdleNs + MinIdleNs, ToNs: c.CloseNs - MinIdleNs}
}

// CommonHandshake is the handshake that most of the connections began with, as a list of commands.
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

// OpenedForMap reports whether it was opened for nothing but a question or two, and closed.
func (k *Conn) OpenedForMap() bool {
	return k.Handshake == nil && k.CloseNs > 0 && k.Calls > 0 && k.Calls <= maxMapConnCalls
}

// maxMapConnCalls is the most calls of a connection that was opened for the map: HELLO, AUTH, CLIENT SETINFO twice,
// CLIENT SETNAME, SELECT, and the question.
// Bound: library, the seven commands that libraries may begin a connection with, and one more.
const maxMapConnCalls = 8

// PercentilesOf are those of a property of some connections.
func PercentilesOf(conns []*Conn, of func(*Conn) int64) facts.Percentiles {
	var ns []int64
	for _, c := range conns {
		ns = append(ns, of(c))
	}
	return facts.PercentilesOfNs(ns)
}
