package facts

import (
	"fmt"
	"sort"
	"strings"

	"slowpath/internal/recording"
)

// Caller is who calls a node: a process on this host, or, where only the server's end of its connections was seen, a
// host.
type Caller struct {
	Name  string // "redigo[29867]", or "10.0.0.7"
	PID   int    // 0: not on this host
	Comm  string
	Conns []*Conn // in order of their begin

	roundTripNs int64 // what callNs gave
}

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

func (c *Caller) InFlightNs() (ns int64) {
	for _, k := range c.Conns {
		ns += k.InFlightNs
	}
	return ns
}

// spentNs is the time that the caller spent on its connections: dialling, and waiting for replies.
func (c *Caller) spentNs() (ns int64) {
	for _, k := range c.Conns {
		ns += k.spentNs()
	}
	return ns
}

// Calls are those of the application.
func (c *Caller) AppCalls() (calls int64) {
	for _, k := range c.Conns {
		calls += k.AppCalls()
	}
	return calls
}

// CallNs is the mean time of a round trip.
func (c *Caller) RoundTripNs() int64 {
	if c.roundTripNs > 0 {
		return c.roundTripNs
	}
	var trips, ns int64
	for _, k := range c.Conns {
		trips, ns = trips+int64(k.HandshakeRoundTrips())+k.AppCalls(), ns+k.spentNs()-k.DialNs
	}
	c.roundTripNs = ns / max(trips, 1)
	return c.roundTripNs
}

// Opened are the connections that were made during the watch.
func (c *Caller) Opened() []*Conn {
	return c.ConnsWhere(func(k *Conn) bool { return k.OpenNs > 0 })
}

func (c *Caller) ConnsWhere(match func(*Conn) bool) (out []*Conn) {
	for _, k := range c.Conns {
		if match(k) {
			out = append(out, k)
		}
	}
	return out
}

// AtOnce is how many connections were open side by side, at most.
func (c *Caller) MaxConcurrent() (most int) {
	type step struct {
		at int64
		by int
	}
	var steps []step
	for _, k := range c.Conns {
		steps = append(steps, step{k.OpenNs, 1})
		if k.CloseNs > 0 {
			steps = append(steps, step{k.CloseNs, -1})
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at < steps[j].at })
	open := 0
	for _, s := range steps {
		open += s.by
		most = max(most, open)
	}
	return most
}

// spentByCallers is the time of all callers of the node on their connections.
func spentByCallers(callers []*Caller) (ns int64) {
	for _, c := range callers {
		ns += c.spentNs()
	}
	return max(ns, 1)
}

// CallerNames lists callers for people.
func CallerNames(callers []*Caller) string {
	var out []string
	for _, c := range callers[:min(3, len(callers))] {
		out = append(out, c.Name)
	}
	if more := len(callers) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// Spread is the 10th, 50th and 90th of a hundred values.
type Percentiles struct{ P10, Median, P90 int64 }

func PercentilesOf(conns []*Conn, of func(*Conn) int64) Percentiles {
	var ns []int64
	for _, c := range conns {
		ns = append(ns, of(c))
	}
	return PercentilesOfNs(ns)
}

func PercentilesOfNs(ns []int64) Percentiles {
	if len(ns) == 0 {
		return Percentiles{}
	}
	sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
	at := func(q int) int64 { return ns[(len(ns)-1)*q/100] }
	return Percentiles{at(10), at(50), at(90)}
}
