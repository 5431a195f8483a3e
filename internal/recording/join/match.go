package join

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// key is a call as both ends know it: the client's end of the connection, and the sequence number of the byte after the
// request. The server's address is no part of it: a published port or a load balancer that only forwards packets
// changes it and leaves these two.
type key struct {
	client string
	seq    uint32
}

// pair is the two ends of one call.
type pair struct {
	server, client recording.Call
	inner, outer   []recording.Segment // of the server's, of the client's; partitions
	arrived        int64               // when the whole reply was in the client's socket, by its clock
	at             int                 // place of the server's in its recording
	sendNs         int64               // how long the client's send took
}

// matched is what match found.
type matched struct {
	pairs                   []pair // ordered by the client's begin
	alone                   []int  // calls of the client's end without a counterpart, by their place
	ambiguous, contradicted int
}

// match finds the calls whose server's end one recording has and whose client's end the other.
func match(server, client *recording.Recording) matched {
	s, c := ends(server, recording.Server), ends(client, recording.Client)
	var m matched
	for k, mine := range c {
		theirs := s[k]
		switch {
		case len(theirs) == 0:
			m.alone = append(m.alone, mine...)
			continue
		case len(mine) > 1 || len(theirs) > 1:
			m.ambiguous += len(mine)
			continue
		}
		if p, ok := newPair(server, client, theirs[0], mine[0]); ok {
			m.pairs = append(m.pairs, p)
		} else {
			m.contradicted++
		}
	}
	slices.Sort(m.alone)
	slices.SortFunc(m.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()),
			cmp.Compare(a.at, b.at))
	})
	return m
}

// ends lists the calls that a recording saw from one end.
func ends(r *recording.Recording, side string) map[key][]int {
	out := map[key][]int{}
	for i, c := range r.Calls {
		if c.Source == recording.SourceTap && c.Side == side && c.Seq != 0 && c.Conn != "" {
			k := key{c.Conn, c.Seq}
			out[k] = append(out[k], i)
		}
	}
	return out
}

// newPair makes sure that two ends are of one call: the same request, for which the server did not take longer than its
// client.
func newPair(server, client *recording.Recording, at, mine int) (pair, bool) {
	p := pair{server: server.Calls[at], client: client.Calls[mine], at: at}
	s, c := p.server, p.client
	sealed := c.Op == "?" // TLS: each end counts the bytes of its own system calls
	if s.Op != c.Op || s.RequestBytes != c.RequestBytes && !sealed || s.EndNs < s.IntendedNs ||
		s.EndNs-s.IntendedNs > c.EndNs-c.IntendedNs+lateNs {
		return p, false
	}
	p.inner = whole(server.Segments[s.ID], s.IntendedNs, s.EndNs)
	p.outer = whole(client.Segments[c.ID], c.IntendedNs, c.EndNs)
	p.arrived = c.IntendedNs
	for _, g := range p.outer {
		if g.Actor == recording.Network || g.Actor == recording.Nobody {
			p.arrived = g.ToNs
		}
	}
	if g := p.outer; len(g) > 0 && g[0].Actor == recording.Client && g[0].State == recording.Send {
		p.sendNs = g[0].ToNs - g[0].FromNs
	}
	return p, true
}

// start is when the client began to send, by its clock.
func (p pair) start() int64 { return p.client.IntendedNs }

// networkNs is the network's share: what the client waited for the reply without the server's time. The server's end of
// a call is noted when its send is over, which can be after the reply has arrived.
func (p pair) networkNs() int64 {
	return max(0, p.arrived-p.start()-(p.server.EndNs-p.server.IntendedNs))
}

// nodes are the server's names for the nodes of the clients' recording, where joined calls agree on it.
func (m matched) nodes() map[string]string {
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
