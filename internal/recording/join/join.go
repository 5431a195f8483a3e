// Package join makes one recording of two that two hosts made of the same calls: the clients' host saw one end of each
// connection, the server's host the other.
//
// Calls are matched by connection and TCP sequence number, never by time. The network's share of a call is the client's
// time for it minus the server's: two durations, each by one clock. The clocks of two hosts are never compared. Their
// offset is bounded by the calls: each was at its server after its client sent it, and before its client had the reply.
package join

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Why recordings cannot be joined, and what to do.
var (
	ErrNoSequence = errors.New("has no TCP sequence numbers, by which calls are joined: it was made by an older " +
		"slowpath, " +
		"or without the kernel source; record again as root")
	ErrNoServerEnd = errors.New("no recording has calls from the clients' end of which another has calls from the " +
		"server's; " +
		"record on the clients' host and on the server's at the same time")
	ErrNAT = errors.New("no connection of one recording is in the other: NAT or a proxy between the hosts, or other " +
		"clients; diagnose each alone: slowpath doctor FILE")
	ErrNoCommonCall = errors.New("no call was slow at both ends, though connections are the same: the time was spent " +
		"at " +
		"one end or in the network, or the recordings are of different times; record again on both hosts, the " +
		"server's with a lower --slow (200us)")
)

// Result counts what was joined of the recording of one clients' host, and what was not.
type Result struct {
	Index  int // of the recording
	Joined int // calls
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
}

// All joins two recordings or more, in any order: one of the server's host, the others of hosts of its clients. The
// result has the times of the server's host. With keepUnmatched, calls that the server's recording does not have are
// kept, though it is not known what the server did meanwhile.
func All(recs []*recording.Recording, keepUnmatched bool) (*recording.Recording, []Result, error) {
	best, most := 0, 0
	for i, s := range recs {
		n := 0
		for j, c := range recs {
			if i == j {
				continue
			}
			n += len(match(s, c).pairs)
		}
		if n > most {
			best, most = i, n
		}
	}
	if most == 0 {
		return nil, nil, whyNone(recs)
	}
	server := recs[best]
	var results []Result
	coverage := newServerCoverage(server)
	for i, client := range recs {
		if i == best {
			continue
		}
		r := joinTwo(server, client, coverage, keepUnmatched)
		r.Index = i
		results = append(results, r)
		server.SetMeta(recording.MetaSlow, client.Meta[recording.MetaSlow]) // callers decide what is slow
	}
	server.Index()
	return server, results, nil
}

// whyNone says why no call was matched.
func whyNone(recs []*recording.Recording) error {
	for i, r := range recs {
		calls := slices.ContainsFunc(r.Calls, fromTap)
		if calls && !slices.ContainsFunc(r.Calls, func(c recording.Call) bool { return c.Seq != 0 }) || !calls &&
			!r.Used(recording.SourceTap) {
			return fmt.Errorf("recording %d %w", i+1, ErrNoSequence)
		}
	}
	ends := false
	for i, s := range recs {
		known := serverConns(s)
		for j, c := range recs {
			for _, call := range c.Calls {
				if i == j || !fromTap(call) || call.Side != recording.Client {
					continue
				}
				if known[call.Conn] {
					return ErrNoCommonCall
				}
				ends = ends || len(known) > 0
			}
		}
	}
	if !ends {
		return ErrNoServerEnd
	}
	return ErrNAT
}

func fromTap(c recording.Call) bool { return c.Source == recording.SourceTap }

// serverConns are the connections whose server's end a recording saw, by the address of the client's end.
func serverConns(r *recording.Recording) map[string]bool {
	known := map[string]bool{}
	for _, c := range r.Calls {
		if c.Side == recording.Server {
			known[c.Conn] = true
		}
	}
	for _, e := range r.Events {
		if e.Source != recording.SourceTap || e.Kind != recording.KindOpen && e.Kind != recording.KindClose {
			continue
		}
		if d := recording.DetailOf[recording.ConnDetail](e); d.Side == recording.Server {
			known[d.Client] = true
		}
	}
	for conn := range servedConns(r) {
		known[conn] = true
	}
	return known
}

// servedConns are the connections of the snapshots "served", with the time of the first.
func servedConns(r *recording.Recording) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.Snapshots { // in order of time
		if conn, ok := strings.CutPrefix(s.Subject, recording.ConnPrefix); ok && s.Source == recording.SourceTap &&
			s.Name == recording.SnapshotServed {
			if _, seen := out[conn]; !seen {
				out[conn] = s.TimeNs
			}
		}
	}
	return out
}

// joinTwo joins a client's recording into that of the server.
func joinTwo(server, client *recording.Recording, coverage *serverCoverage, keepUnmatched bool) Result {
	m := match(server, client)
	r := Result{
		Joined: len(m.pairs), Ambiguous: m.ambiguous, Contradicted: m.contradicted,
		Reversed: len(match(client, server).pairs),
	}
	conns := serverConns(server)
	clocks := newClockBounds(m.pairs)
	var fast, rest []int
	for _, i := range m.unmatched {
		if coverage.isFast(client.Calls[i], clocks) {
			fast = append(fast, i)
			continue
		}
		rest = append(rest, i)
		if !conns[client.Calls[i].Conn] {
			r.UnknownConn++
		}
	}
	r.Unmatched, r.Fast = len(rest), len(fast)
	if coverage != nil {
		r.FastNs = coverage.slowNs
	}
	if r.Joined == 0 {
		return r
	}
	r.RejectedBounds, r.ClockUnknown = clocks.rejected, clocks.unusable
	if lo, hi, ok := clocks.at(m.pairs[0].start()); ok {
		r.OffsetNs, r.OffsetErrorNs = lo+(hi-lo)/2, (hi-lo+1)/2
	}
	rows := clientRows{
		server: server, client: client, clocks: clocks, nodes: m.nodeNames(),
		usedSubjects: processSubjects(server),
	}
	retransmitted := retransmits(server)
	for _, p := range m.pairs {
		c, segs := p.join(clocks, retransmitted[p.server.Conn])
		server.Calls[p.serverIndex], server.Segments[c.ID] = c, segs
	}
	rows.addCalls(fast, coverage.boundNetwork)
	if keepUnmatched {
		rows.addCalls(rest, func(_ recording.Call, segs []recording.Segment) []recording.Segment { return segs })
	}
	r.PIDClashes = rows.addEvidence()
	return r
}

// BlindSpots lists what is not known, for the verdict. name is that of the recording of the clients' host.
func (r Result) BlindSpots(name string) []recording.BlindSpot {
	var out []recording.BlindSpot
	add := func(n int, what, why, enable string) {
		if n > 0 {
			out = append(out, recording.BlindSpot{
				What: fmt.Sprintf("%d calls of %s %s", n, name, what), Why: why,
				Enable: enable,
			})
		}
	}
	const unmatched = "have no counterpart at their server"
	add(r.UnknownConn, unmatched, "the server's recording does not have their connections: NAT or a proxy between, or "+
		"another server", "record on the host that is between, too")
	add(r.Unmatched-r.UnknownConn, unmatched, "the server's end of their connections was seen, and they were not slow "+
		"there, or "+
		"not while it was recorded",
		"record both hosts at the same time, the server's with a lower --slow (200us)")
	add(r.Fast, "have only an upper limit for their server's part", fmt.Sprintf("each took the server less than %v, "+
		"or "+
		"its recording would have it", time.Duration(r.FastNs)),
		"record the server's host with a lower --slow (200us)")
	add(r.Ambiguous, "are not joined", "several have the same sequence number on their connection: equal commands of "+
		"one "+
		"pipeline", "")
	add(r.Contradicted, "are not joined", "what the two ends show does not fit into one call", "")
	add(r.Reversed, "are not joined", "their server is on the host of the clients, and their client on that of the "+
		"server", "join recordings of that direction alone")
	if r.PIDClashes > 0 {
		out = append(out, recording.BlindSpot{
			What: fmt.Sprintf("the waits of %d client processes of %s", r.PIDClashes,
				name), Why: "processes of the server's host have the same numbers",
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
