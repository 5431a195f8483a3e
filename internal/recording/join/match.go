package join

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// callKey identifies a call at both ends: the address of the client's end of the connection, and the TCP sequence
// number of the byte after the request. It does not include the server's address, which a published port or a load
// balancer that forwards packets changes.
type callKey struct {
	client string
	seq    uint32
}

// pair is the two ends of one call.
type pair struct {
	server, client         recording.Call
	serverSegs, clientSegs []recording.Segment // partitions of the two calls
	replyAtNs              int64               // when the whole reply was in the client's socket, by its clock
	serverIndex            int                 // index of the server's call in its recording
	sendNs                 int64               // how long the client's send took
}

// matches is the result of match.
type matches struct {
	pairs                   []pair // ordered by the client's begin
	unmatched               []int  // calls of the client's end without a counterpart, by index
	ambiguous, contradicted int
}

// match finds the calls whose server's end one recording has and whose client's end the other.
func match(server, client *recording.Recording) matches {
	s, c := callsBySide(server, recording.Server), callsBySide(client, recording.Client)
	var m matches
	for k, clientCalls := range c {
		serverCalls := s[k]
		switch {
		case len(serverCalls) == 0:
			m.unmatched = append(m.unmatched, clientCalls...)
			continue
		case len(clientCalls) > 1 || len(serverCalls) > 1:
			m.ambiguous += len(clientCalls)
			continue
		}
		if p, ok := newPair(server, client, serverCalls[0], clientCalls[0]); ok {
			m.pairs = append(m.pairs, p)
		} else {
			m.contradicted++
		}
	}
	slices.Sort(m.unmatched)
	slices.SortFunc(m.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()),
			cmp.Compare(a.serverIndex, b.serverIndex))
	})
	return m
}

// callsBySide lists the calls that a recording saw from one end.
func callsBySide(r *recording.Recording, side string) map[callKey][]int {
	out := map[callKey][]int{}
	for i, c := range r.Calls {
		if c.Source == recording.SourceTap && c.Side == side && c.Seq != 0 && c.Conn != "" {
			k := callKey{c.Conn, c.Seq}
			out[k] = append(out[k], i)
		}
	}
	return out
}

// newPair checks that two ends are of one call: the same request, and the server did not take longer than the client.
func newPair(server, client *recording.Recording, at, mine int) (pair, bool) {
	p := pair{server: server.Calls[at], client: client.Calls[mine], serverIndex: at}
	s, c := p.server, p.client
	sealed := c.Op == "?" // TLS: each end counts the bytes of its own system calls
	if s.Op != c.Op || s.RequestBytes != c.RequestBytes && !sealed || s.EndNs < s.IntendedNs ||
		s.EndNs-s.IntendedNs > c.EndNs-c.IntendedNs+maxSendDelayNs {
		return p, false
	}
	p.serverSegs = partition(server.SegmentsOf(s.ID), s.IntendedNs, s.EndNs)
	p.clientSegs = partition(client.SegmentsOf(c.ID), c.IntendedNs, c.EndNs)
	p.replyAtNs = c.IntendedNs
	for _, g := range p.clientSegs {
		if g.Actor == recording.Network || g.Actor == recording.Nobody {
			p.replyAtNs = g.ToNs
		}
	}
	if g := p.clientSegs; len(g) > 0 && g[0].Actor == recording.Client && g[0].State == recording.Send {
		p.sendNs = g[0].ToNs - g[0].FromNs
	}
	return p, true
}

// start is when the client began to send, by its clock.
func (p pair) start() int64 { return p.client.IntendedNs }

// networkNs is the network's share: the client's wait for the reply minus the server's time. The server's end of a call
// is recorded when its send returns, which can be after the reply has arrived.
func (p pair) networkNs() int64 {
	return max(0, p.replyAtNs-p.start()-(p.server.EndNs-p.server.IntendedNs))
}

// nodeNames maps the nodes' names in the client's recording to those in the server's, by majority of the joined calls.
func (m matches) nodeNames() map[string]string {
	votes := map[string]map[string]int{}
	for _, p := range m.pairs {
		if votes[p.client.Node] == nil {
			votes[p.client.Node] = map[string]int{}
		}
		votes[p.client.Node][p.server.Node]++
	}
	out := map[string]string{}
	for from, to := range votes {
		best := ""
		for name, n := range to {
			if best == "" || n > to[best] || n == to[best] && name < best {
				best = name
			}
		}
		out[from] = best
	}
	return out
}
