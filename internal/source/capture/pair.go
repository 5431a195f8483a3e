package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
)

// Why two captures are not of the two ends of the same connections.
var (
	ErrNothingInCommon = errors.New("no packet of one is in the other: they are of other times or connections, or a " +
		"proxy is between them; diagnose each alone: slowpath doctor FILE")
	ErrSamePlace = errors.New("their packets have the same times: they were made at the same place; give one of them")
)

// Pair is two captures of the same connections.
type Pair struct {
	Client, Server []File
	options        Options
	surveys        [2]*analysis
	ends           [][2]netip.AddrPort // servers that both have, by their addresses in each
}

// callID is a call at any place of its path: the sequence numbers after its request and after its reply. NAT changes
// neither.
type callID struct{ end, replyEnd uint32 }

// maxNoted calls of the client's end are looked for at the server's.
const maxNoted = 500_000

// pair joins what is read of one end to what was read of the other.
type pair struct {
	noting bool // this is the client's end, whose calls are noted
	calls  map[callID]string
}

// wants reports whether the client's end has recorded a call, and learns the client's address there.
func (p *pair) wants(c *conn, k call) bool {
	if p == nil || p.noting {
		return false
	}
	name, ok := p.calls[callID{k.end, k.replyEnd}]
	if ok && c.alias == "" && name != c.client.address.String() {
		c.alias = name
	}
	return ok
}

// take notes a call that is recorded at the client's end.
func (p *pair) take(c *conn, k call) {
	if p == nil || !p.noting || len(p.calls) >= maxNoted {
		return
	}
	p.calls[callID{k.end, k.replyEnd}] = c.name()
}

// Ends finds out which of two captures, made at different places of the path of the same connections, is nearer the
// clients.
func Ends(ctx context.Context, x, y []File, o Options) (p Pair, err error) {
	o.setDefaults()
	p = Pair{Client: x, Server: y, options: o}
	for i, files := range [][]File{x, y} {
		if p.surveys[i], err = surveyOf(ctx, files, o); err != nil {
			return p, fmt.Errorf("%s: %w", files[0].Name, err)
		}
	}
	servers := map[netip.AddrPort]bool{}
	for _, s := range p.surveys {
		for address, n := range s.nodes {
			if n.proven {
				servers[address] = true
			}
		}
	}
	if len(servers) == 0 {
		return p, fmt.Errorf("%s: %w: %s", x[0].Name, ErrNoCalls, p.surveys[0].why())
	}
	return p, p.compare(ctx, servers)
}

// Read reads both captures. What is recorded of the client's is recorded of the server's, too, so that it can be
// joined.
func (p Pair) Read(ctx context.Context, client, server Sink) (s [2]Summary, err error) {
	one, two := newAnalysis(p.options, client), newAnalysis(p.options, server)
	one.learn(p.surveys[0])
	two.learn(p.surveys[1])
	for _, e := range p.ends {
		if n := one.nodeAt(e[0]); n != nil {
			n.vantage = atClient
		}
		if n := two.nodeAt(e[1]); n != nil {
			n.vantage = atServer
		}
	}
	noted := map[callID]string{}
	one.pair, two.pair = &pair{noting: true, calls: noted}, &pair{calls: noted}
	if s[0], err = one.read(ctx, p.Client); err != nil {
		return s, fmt.Errorf("%s: %w", p.Client[0].Name, err)
	}
	if s[1], err = two.read(ctx, p.Server); err != nil {
		return s, fmt.Errorf("%s: %w", p.Server[0].Name, err)
	}
	return s, nil
}

// segmentID is a segment with data, whatever NAT has made of its addresses.
type segmentID struct{ seq, ack, stamp uint32 }

// sighting is when a segment passed.
type sighting struct {
	ns       int64
	server   netip.AddrPort
	toServer bool
}

// sampled are segments of a capture that are chosen by a hash, the same ones in each capture.
type sampled struct {
	seed  maphash.Seed
	every uint64 // one of so many; a power of two
	all   map[segmentID]sighting
	twice map[segmentID]bool // not told apart
}

// maxSampled segments are kept of a capture.
const maxSampled = 100_000

func (s *sampled) take(id segmentID, at sighting) {
	if maphash.Comparable(s.seed, id)%s.every != 0 {
		return
	}
	if first, again := s.all[id]; again {
		if at.ns-first.ns >= duplicateNs { // else it was captured at two interfaces
			s.twice[id] = true
		}
		return
	}
	s.all[id] = at
	if len(s.all) > maxSampled {
		s.thin(2 * s.every)
	}
}

// thin keeps one of so many.
func (s *sampled) thin(every uint64) {
	s.every = every
	for id := range s.all {
		if maphash.Comparable(s.seed, id)%every != 0 {
			delete(s.all, id)
			delete(s.twice, id)
		}
	}
}

// sample reads a capture for segments from and to servers.
func sample(ctx context.Context, files []File, servers map[netip.AddrPort]bool, seed maphash.Seed) (*sampled, error) {
	s := &sampled{seed: seed, every: 1, all: map[segmentID]sighting{}, twice: map[segmentID]bool{}}
	src := newChain(files)
	defer src.close()
	var p packet
	for n := 0; src.next(&p) == nil; n++ {
		if n%askPackets == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if p.size == 0 || p.ns < 0 {
			continue
		}
		at := sighting{ns: p.ns, server: p.dst, toServer: true}
		if !servers[p.dst] {
			if !servers[p.src] {
				continue
			}
			at.server, at.toServer = p.src, false
		}
		s.take(segmentID{p.seq, p.ack, p.stamp}, at)
	}
	return s, nil
}

// met is a segment in two captures.
type met struct{ first, second sighting }

// compare puts the capture that is nearer the clients first. The time from one to the other, each by its own
// clock, is that of the path plus the difference of the clocks for segments to the server, and the path minus the
// difference for those back: the sum of both is above 0 if the first is nearer the clients, whatever the clocks.
func (p *Pair) compare(ctx context.Context, servers map[netip.AddrPort]bool) error {
	seed := maphash.MakeSeed()
	x, err := sample(ctx, p.Client, servers, seed)
	if err != nil {
		return err
	}
	y, err := sample(ctx, p.Server, servers, seed)
	if err != nil {
		return err
	}
	every := max(x.every, y.every)
	x.thin(every)
	y.thin(every)
	var common []met
	for id, one := range x.all {
		two, both := y.all[id]
		if both && !x.twice[id] && !y.twice[id] && one.toServer == two.toServer {
			common = append(common, met{one, two})
		}
	}
	slices.SortFunc(common, func(a, b met) int { return cmp.Compare(a.first.ns, b.first.ns) })
	sum, ok := pathOf(common) // not ok: none in one of the directions
	switch {
	case !ok:
		return ErrNothingInCommon
	case sum == 0:
		return ErrSamePlace
	}
	known := map[[2]netip.AddrPort]bool{}
	for _, m := range common {
		if e := [2]netip.AddrPort{m.first.server, m.second.server}; !known[e] {
			known[e] = true
			p.ends = append(p.ends, e)
		}
	}
	if sum < 0 {
		p.swap()
	}
	return nil
}

// swap makes the first capture the second.
func (p *Pair) swap() {
	p.Client, p.Server = p.Server, p.Client
	p.surveys[0], p.surveys[1] = p.surveys[1], p.surveys[0]
	for i, e := range p.ends {
		p.ends[i] = [2]netip.AddrPort{e[1], e[0]}
	}
}

// apartNs is for how long clocks are taken as going alike: at 10 ppm they come apart by 10 µs in it.
const apartNs = int64(1e9)

// pathOf is the time in ns that the path between two captures takes there and back: the median over times in which the
// clocks go alike. Below 0: the second one is nearer the clients.
func pathOf(common []met) (ns float64, ok bool) {
	var sums []float64
	for rest := common; len(rest) > 0; {
		end := 0
		for end < len(rest) && rest[end].first.ns-rest[0].first.ns <= apartNs {
			end++
		}
		if sum, ok := bothWays(rest[:end]); ok {
			sums = append(sums, sum)
		}
		rest = rest[end:]
	}
	if len(sums) == 0 {
		return bothWays(common)
	}
	slices.Sort(sums)
	return sums[len(sums)/2], true
}

// bothWays is the mean time there plus the mean time back, in ns. What waits on its way only adds to it. Times that are
// rounded to microseconds hide the least time of a short path, and not the mean.
func bothWays(common []met) (ns float64, ok bool) {
	if len(common) == 0 {
		return 0, false
	}
	var there, back, n, m float64
	clock := common[0].second.ns - common[0].first.ns // about
	for _, c := range common {
		if d := float64(c.second.ns - c.first.ns - clock); c.first.toServer {
			there, n = there+d, n+1
		} else {
			back, m = back-d, m+1
		}
	}
	if n == 0 || m == 0 {
		return 0, false
	}
	return there/n + back/m, true
}
