package join

import (
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Result counts what was joined of the recording of one clients' host, and what was not.
type Result struct {
	Index  int   // of the recording
	Server int   // index of the recording of the server's host
	Joined int   // calls
	Why    error // no call of it is in the recording of a server's host
	// calls without a counterpart that took the server less than FastNs: otherwise its recording would have them
	Fast           int
	FastNs         int64
	Unmatched      int   // other calls without a counterpart,
	UnknownConn    int   // of them, on connections that the server's recording does not have
	Ambiguous      int   // calls with several counterparts: equal commands of one pipeline
	Contradicted   int   // calls whose two ends do not fit into one call
	Reversed       int   // calls from the server's host to the clients' host
	RejectedBounds int   // joined calls whose bounds of the clock offset contradict the others
	ClockUnknown   bool  // too many of them: the offset is not known
	OffsetNs       int64 // server's clock minus clients' clock at the first joined call,
	OffsetErrorNs  int64 // plus or minus
	PIDClashes     int   // client processes with the number of another process of the server's host
	Captures       bool  // these are packet captures
}

// BlindSpots lists what is not known, for the verdict. name is that of the recording of the clients' host.
func (r Result) BlindSpots(name string) []recording.BlindSpot {
	var out []recording.BlindSpot
	add := func(n int, what, why, enable string) {
		if n > 0 {
			out = append(out, recording.BlindSpot{
				What: format.Count(n, "call") + " of " + name + " " + what, Why: why, Enable: enable,
			})
		}
	}
	const unmatched = "without a counterpart at the server"
	if r.Captures {
		add(r.Unmatched, unmatched, "the other capture does not have them, or not all of their packets: it is of "+
			"another time, lacks packets, or a proxy is between", "capture whole packets at both ends at the same time")
		r.UnknownConn, r.Unmatched = 0, 0
	}
	add(r.UnknownConn, unmatched, "the server's recording does not have the connections: NAT or a proxy between, or "+
		"another server", "record on the host that is between, too")
	add(r.Unmatched-r.UnknownConn, unmatched, "the server's end of the connections was seen, and the calls were not "+
		"slow "+
		"there, or not while it was recorded",
		"record both hosts at the same time, the server's with a lower --slow (200us)")
	add(r.Fast, "with only an upper limit for the server's part", fmt.Sprintf("each took the server less than %v, or "+
		"its recording would have it", time.Duration(r.FastNs)),
		"record the server's host with a lower --slow (200us)")
	add(r.Ambiguous, "not joined", "several have the same sequence number on their connection: equal commands of one "+
		"pipeline", "")
	add(r.Contradicted, "not joined", "what the two ends show does not fit into one call", "")
	add(r.Reversed, "not joined", "the server is on the host of the clients, and the client on that of the server",
		"join recordings of that direction alone")
	if r.PIDClashes > 0 {
		out = append(out, recording.BlindSpot{
			What:   "the waits of " + format.Count(r.PIDClashes, "client") + " of " + name,
			Why:    "processes of the server's host have the same numbers",
			Enable: "slowpath doctor " + name,
		})
	}
	if r.ClockUnknown {
		out = append(out, recording.BlindSpot{
			What: "how far the clock of " + name + " is from that of the server",
			Why: "the joined calls contradict each other: a host was suspended, or a clock was wrong; the waits of " +
				"its clients' threads are left out", Enable: "record again",
		})
	}
	return out
}

// Clocks says how far the clocks are apart.
func (r Result) Clocks() string {
	if r.ClockUnknown || r.Joined == 0 {
		return "how far its clock is from the server's is not known"
	}
	word, ns := "ahead of", r.OffsetNs
	if ns < 0 {
		word, ns = "behind", -ns
	}
	return fmt.Sprintf("by these the server's clock is %v %s its own, give or take %v",
		time.Duration(ns).Round(time.Microsecond), word, time.Duration(r.OffsetErrorNs).Round(time.Microsecond))
}
