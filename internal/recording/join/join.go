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

	"slowpath/internal/recording"
)

// Why recordings cannot be joined, and what to do.
var (
	ErrNoSequence = errors.New("has no TCP sequence numbers, by which calls are joined: it was made by an older " +
		"slowpath, or without the tap; record again as root")
	ErrNoServerEnd = errors.New("no recording has calls from the clients' end of which another has calls from the " +
		"server's; record on the clients' host and on the server's at the same time")
	ErrNAT = errors.New("no connection of one recording is in the other: NAT or a proxy between the hosts, or other " +
		"clients; diagnose each alone: slowpath doctor FILE")
	ErrNoCommonCall = errors.New("no call was slow at both ends, though connections are the same: the time was spent " +
		"at one end or in the network, or the recordings are of different times; record again on both hosts, the " +
		"server's with a lower --slow (200us)")
)

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
		Captures: server.Used(recording.SourceCapture),
	}
	conns := serverConns(server)
	late := maxSendDelayNs
	if r.Captures {
		late = roundedNs
	}
	clocks := newClockBounds(m.pairs, late)
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
		server.Calls[p.serverIndex] = c
		server.SetSegments(c.ID, segs)
	}
	rows.addCalls(fast, coverage.boundNetwork)
	if keepUnmatched {
		rows.addCalls(rest, func(_ recording.Call, segs []recording.Segment) []recording.Segment { return segs })
	}
	r.PIDClashes = rows.addEvidence()
	return r
}
