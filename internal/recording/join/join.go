// Package join makes one recording of two that two hosts made of the same calls: the host of the clients saw one end of
// each connection, the host of the server the other.
//
// Calls are matched by connection and TCP sequence number, never by time. The network's share of a call is the client's
// time for it minus the server's: two lengths, each by one clock. The clocks of two hosts are never compared: how far
// they are apart is bounded by the calls themselves, each of which was at its server after its client sent it and
// before its client had the reply.
package join

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Why recordings cannot be joined. The texts end in what to do.
var (
	ErrNoSequence = errors.New("has no TCP sequence numbers, by which calls are joined: it was made by an older " +
		"slowpath, " +
		"or without the kernel source; record again, as root")
	ErrNoServerEnd = errors.New("no recording has calls from the clients' end of which another has calls from the " +
		"server's; " +
		"record on the clients' host and on the server's at the same time")
	ErrNAT = errors.New("no connection of one recording is in the other: NAT or a proxy between the hosts, or other " +
		"clients; give each alone: slowpath doctor FILE")
	ErrNoCommonCall = errors.New("no call was slow at both ends, though connections are the same: the time went at " +
		"one end " +
		"or on the way, or they were made at different times; record again on both hosts, the server's with a lower " +
		"--slow (200us)")
)

// Result is what was joined of the recording of one host of clients, and what was not.
type Result struct {
	Index  int // its place among the recordings
	Joined int
	// calls without a counterpart that their server had for less than QuickNs, or its recording would have them
	Fast           int
	FastNs         int64
	Unmatched      int   // calls without a counterpart, of which no more is known,
	UnknownConn    int   // of these on connections that the server's recording does not have
	Ambiguous      int   // of which one recording has several: equal commands of one pipeline
	Contradicted   int   // whose two ends do not fit into one call
	Reversed       int   // whose server is on the host of the clients, and whose client on that of the server
	RejectedBounds int   // joined calls that contradict the others about the clocks
	ClockUnknown   bool  // how far the clocks are apart: too many do
	OffsetNs       int64 // the server's clock is ahead of the clients' by so much at the first joined call,
	OffsetErrorNs  int64 // give or take so much
	PIDClashes     int   // client processes whose number another process of the server's host has
}

// All joins two recordings or more: one of the server's host, the others of hosts of its clients. Their order does not
// matter. The result has the times of the server's host. With alone, calls of which the server's recording knows
// nothing stay, too; without it they do not, since what the server did meanwhile is not known.
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
		server.SetMeta(recording.MetaSlow, client.Meta[recording.MetaSlow]) // what is slow is so for a caller
	}
	server.Index()
	return server, results, nil
}

// reason says why there is not one pair.
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

// connections are those whose server's end a recording saw, by the address of the client's.
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

// served are the connections whose server's end a recording says it has, and since when.
func servedConns(r *recording.Recording) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.Snapshots { // in order of time
		if conn, ok := strings.CutPrefix(s.Subject, recording.ConnPrefix); ok && s.Source == recording.SourceTap &&
			s.Name == recording.SnapshotServed {
			if _, had := out[conn]; !had {
				out[conn] = s.TimeNs
			}
		}
	}
	return out
}

// two joins a client's recording into that of the server.
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

// Blind says what is not known, as blind spots of a verdict. name is that of the recording of the clients' host.
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
	const alone = "have no counterpart at their server"
	add(r.UnknownConn, alone, "the server's recording does not have their connections: NAT or a proxy between, or "+
		"another server", "record on the host that is between, too")
	add(r.Unmatched-r.UnknownConn, alone, "the server's end of their connections was seen, and they were not slow "+
		"there, or "+
		"not while it was recorded",
		"record both hosts at the same time, the server's with a lower --slow (200us)")
	add(r.Fast, "have only a bound for their server's part", fmt.Sprintf("the server had each for less than %v, or "+
		"its recording would have it", time.Duration(r.FastNs)),
		"record the server's host with a lower --slow (200us)")
	add(r.Ambiguous, "are not joined", "several have the same place on their connection: equal commands of one "+
		"pipeline", "")
	add(r.Contradicted, "are not joined", "what the two ends say does not fit into one call", "")
	add(r.Reversed, "are not joined", "their server is on the host of the clients, and their client on that of the "+
		"server", "give a recording of the other way alone")
	if r.PIDClashes > 0 {
		out = append(out, recording.BlindSpot{
			What: fmt.Sprintf("what %d client processes of %s went through", r.PIDClashes,
				name), Why: "processes of the server's host have the same numbers",
			Enable: "slowpath doctor " + name,
		})
	}
	if r.ClockUnknown {
		out = append(out, recording.BlindSpot{
			What: "how far the clock of " + name + " is from that of the server",
			Why: "the joined calls contradict each other: a host slept, or a clock was wrong; what its clients' " +
				"threads went through is left out", Enable: "record again",
		})
	}
	return out
}

// Clocks says in words how far the clocks are apart.
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
