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

// All joins two recordings or more, in any order: some of servers' hosts, the others of hosts of their clients. The
// result has the times of the server's host, of several that of the one with most calls, and then Hosts. With
// keepUnmatched, calls that no server's recording has are kept, though it is not known what the server did meanwhile.
func All(recs []*recording.Recording, keepUnmatched bool) (*recording.Recording, []Result, error) {
	pairs := pairsOf(recs)
	servers := serversOf(pairs)
	if len(servers) == 0 {
		return nil, nil, whyNone(recs)
	}
	hosts := aligned(recs, pairs, servers)
	whole := together(hosts)
	coverages := make([]*serverCoverage, len(hosts))
	for k, host := range hosts {
		coverages[k] = newServerCoverage(host)
	}
	var results []Result
	why := whyNot(recs, pairs, servers)
	for i, client := range recs {
		if slices.Contains(servers, i) {
			continue
		}
		for n, part := range partsOf(client, hosts) {
			host, coverage := hosts[part.host], coverages[part.host]
			r := joinTwo(host, part.of, coverage, keepUnmatched)
			if n > 0 { // the rest of it is there
				part.of = callsAlone(part.of)
			}
			if host != whole {
				joinTwo(whole, part.of, coverage, keepUnmatched)
			}
			r.Index, r.Server, r.Why = i, servers[part.host], why[i]
			results = append(results, r)
			if r.Joined > 0 { // callers decide what is slow
				host.SetMeta(recording.MetaSlow, client.Meta[recording.MetaSlow])
				whole.SetMeta(recording.MetaSlow, client.Meta[recording.MetaSlow])
			}
		}
	}
	for _, host := range hosts {
		host.Index()
	}
	whole.Index()
	return whole, results, nil
}

// whyNot says of each recording that has no call in common with a server's host why, by its index.
func whyNot(recs []*recording.Recording, pairs [][]int, servers []int) map[int]error {
	out := map[int]error{}
	for i, r := range recs {
		if !slices.ContainsFunc(servers, func(s int) bool { return i == s || pairs[s][i] > 0 }) {
			out[i] = whyNone([]*recording.Recording{recs[servers[0]], r})
		}
	}
	return out
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
