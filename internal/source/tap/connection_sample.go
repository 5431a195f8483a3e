//go:build linux

package tap

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"slowpath/internal/recording"
)

// connSample keeps the CPU time of the programs within a budget. Where the calls take more of it, connections drawn at
// random are left out: the programs leave at once when something happens on them, and nothing is known of their calls.
// Both ends of a connection are left out, by the port of its client. Of each process, or address, that makes calls one
// connection stays. They are followed again when there are fewer calls, and when one of them held up the server.
type connSample struct {
	budget    float64 // CPU time of the programs per time; 0: no limit
	most      int     // connections that are kept in mind
	perCallNs float64 // of the programs, for a call at one end
	conns     map[clientEnd]*sampleConn
	ports     map[uint16][]clientEnd
	leftOut   int
	calls     uint64 // up to the last look,
	lookedNs  int64  // and when that was
	widened   int64  // when all connections were followed again because of a culprit
	// put tells the programs whether connections from a port are left out, and reports whether it could.
	put func(port uint16, leftOut bool) bool
	// tell is called when a connection is left out for the first time.
	tell func(client clientEnd)
	// selected reports whether the process filter selects the client: others are left out first; nil: there is none.
	selected func(client clientEnd) bool
}

// sampleConn is a connection that made calls for a second or longer.
type sampleConn struct {
	role    kernelRole // the end that counts
	ends    uint32     // that were seen and have not closed: 1 << role
	caller  caller
	seenNs  int64
	calls   uint64
	rate    float64 // calls per second
	leftOut bool
	told    bool
}

// caller is a process of this host, or the address of another one.
type caller struct {
	pid  int
	addr netip.Addr
}

const (
	// usualPerCallNs is the time of the programs for one end of a call where the kernel did not measure it; see
	// docs/overhead.md.
	usualPerCallNs = 500
	// sureCalls: so many calls give a mean of their cost.
	sureCalls = 1000
	// leastConns stay, whatever they cost: the calls of fewer say little about the others.
	leastConns = 4
	// widenFor: after a connection that is left out held up the server, all are followed for this long, and not more
	// often than each widenEvery.
	widenFor   = 10 * time.Second
	widenEvery = time.Minute
)

func newConnSample(budget float64, most int) *connSample {
	return &connSample{
		budget: budget, most: most, perCallNs: usualPerCallNs,
		conns: map[clientEnd]*sampleConn{}, ports: map[uint16][]clientEnd{},
	}
}

// measured takes what the kernel measured of the programs while there were so many calls.
func (s *connSample) measured(ns time.Duration, calls uint64) {
	if calls >= sureCalls && ns > 0 {
		s.perCallNs = float64(ns) / float64(calls)
	}
}

// seen notes that an end of a connection has followed so many calls up to a time. pid is the client's, 0: not known.
func (s *connSample) seen(client clientEnd, role kernelRole, pid int, calls uint64, ns int64) {
	c := s.conns[client]
	if c == nil && len(s.conns) >= s.most {
		return // it is always followed
	}
	if c == nil {
		c = &sampleConn{role: role, rate: float64(calls)} // the programs report after a second
		s.conns[client] = c
		s.ports[client.Port()] = append(s.ports[client.Port()], client)
		if s.portLeftOut(client.Port()) { // another one from the same port was before
			s.set(client.Port(), true)
		}
	}
	c.ends |= 1 << role
	if c.role != role {
		return // the other end counts
	}
	if c.seenNs != 0 && ns > c.seenNs {
		c.rate = float64(calls-min(calls, c.calls)) / float64(ns-c.seenNs) * 1e9
	}
	c.caller, c.seenNs, c.calls = caller{pid: pid}, ns, calls
	if pid == 0 {
		c.caller.addr = client.Addr()
	}
}

// opened: a new connection is followed.
func (s *connSample) opened(client clientEnd) { s.forget(client) }

// closed notes that an end of a connection closed. It is kept in mind until both ends have. The others from its port
// are followed again.
func (s *connSample) closed(client clientEnd, role kernelRole) {
	if c := s.conns[client]; c != nil && c.ends&^(1<<role) != 0 {
		c.ends &^= 1 << role
		s.followPort(client.Port())
		return
	}
	s.forget(client)
}

func (s *connSample) forget(client clientEnd) {
	port := client.Port()
	s.followPort(port)
	delete(s.conns, client)
	s.ports[port] = slices.DeleteFunc(s.ports[port], func(c clientEnd) bool { return c == client })
	if len(s.ports[port]) == 0 {
		delete(s.ports, port)
	}
}

// wasLeftOut reports whether a connection is left out, or was: what the programs know of its last bytes is old.
func (s *connSample) wasLeftOut(client clientEnd) bool {
	c := s.conns[client]
	return c != nil && c.told
}

func (s *connSample) portLeftOut(port uint16) bool {
	return slices.ContainsFunc(s.ports[port], func(c clientEnd) bool { return s.conns[c].leftOut })
}

func (s *connSample) followPort(port uint16) {
	if s.portLeftOut(port) {
		s.set(port, false)
	}
}

// set leaves the connections from a port out, or has them followed again.
func (s *connSample) set(port uint16, leftOut bool) {
	if !s.put(port, leftOut) {
		return
	}
	for _, client := range s.ports[port] {
		c := s.conns[client]
		if c.leftOut == leftOut {
			continue
		}
		c.leftOut = leftOut
		if !leftOut {
			s.leftOut--
			c.seenNs = 0 // the calls since then are not known
			continue
		}
		s.leftOut++
		if !c.told {
			c.told = true
			s.tell(client)
		}
	}
}

// adjust holds the budget: calls is how many ends of calls the programs have followed up to now.
func (s *connSample) adjust(calls uint64, now int64) {
	made, ns := float64(calls-min(calls, s.calls)), float64(now-s.lookedNs)
	first := s.lookedNs == 0
	s.calls, s.lookedNs = calls, now
	if s.budget == 0 || first || ns <= 0 {
		return
	}
	cost := made * s.perCallNs / ns
	switch {
	case cost > s.budget*1.2 && now-s.widened > int64(widenFor):
		s.leave(1 - s.budget/cost)
	case cost < s.budget*0.6 && s.leftOut > 0:
		s.followAgain(s.budget / max(cost, s.budget/10))
	}
}

// leave leaves out connections that make this part of the calls.
func (s *connSample) leave(part float64) {
	var followed []clientEnd
	of := map[caller]int{}
	rate := 0.0
	for client, c := range s.conns {
		if c.leftOut {
			continue
		}
		followed = append(followed, client)
		of[c.caller]++
		rate += c.rate
	}
	shuffle(followed)
	if s.selected != nil {
		slices.SortStableFunc(followed, func(a, b clientEnd) int {
			switch x, y := s.selected(a), s.selected(b); {
			case x == y:
				return 0
			case x:
				return 1
			}
			return -1
		})
	}
	wanted, kept := rate*part, len(followed)
	for _, client := range followed {
		c := s.conns[client]
		if wanted <= 0 || kept <= leastConns {
			return
		}
		if c.rate == 0 || c.rate > wanted*2 || of[c.caller] == 1 {
			continue
		}
		s.set(client.Port(), true)
		of[c.caller]--
		kept--
		wanted -= c.rate
	}
}

// followAgain follows so many times the connections that are followed now, as far as there are some.
func (s *connSample) followAgain(times float64) {
	var out []clientEnd
	for client, c := range s.conns {
		if c.leftOut {
			out = append(out, client)
		}
	}
	shuffle(out)
	more := max(1, int(float64(len(s.conns)-len(out))*(times-1)/2))
	for _, client := range out[:min(more, len(out))] {
		s.set(client.Port(), false)
	}
}

// widen follows all connections for a while: one that is left out held up the server.
func (s *connSample) widen(now int64) {
	if s.leftOut == 0 || s.widened != 0 && now-s.widened < int64(widenEvery) {
		return
	}
	s.widened = now
	for client, c := range s.conns {
		if c.leftOut {
			s.set(client.Port(), false)
		}
	}
}

// shuffle puts connections in a random order.
func shuffle(list []clientEnd) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// leaveOut tells the programs whether connections from a port are left out. A port of a server is never.
func (t *Tap) leaveOut(port uint16, leftOut bool) bool {
	ports := t.kernel.coll.Maps[kernelMapPorts]
	var use kernelPortUse
	if ports.Lookup(uint32(port), &use) != nil || use == kernelPortUsePORT_OF_SERVER {
		return false
	}
	use = kernelPortUsePORT_UNUSED
	if leftOut {
		use = kernelPortUsePORT_LEFT_OUT
		if t.kernel.coll.Variables[kernelVarLeavingOut].Set(uint32(1)) != nil {
			return false
		}
	}
	return ports.Put(uint32(port), use) == nil
}

// tellLeftOut records that not all of what a connection did is known.
func (t *Tap) tellLeftOut(client clientEnd) {
	t.Sink.Snapshot(recording.Snapshot{
		TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: recording.ConnPrefix + client.String(),
		Name: recording.SnapshotLeftOut, Body: "{}",
	})
}

// sampleConns holds the budget, once per second.
func (t *Tap) sampleConns() { t.recorder.sample.adjust(t.endsOfCalls(), t.Clock.Now()) }

// endsOfCalls is how many ends of calls the programs have followed up to the last count.
func (t *Tap) endsOfCalls() (n uint64) {
	for _, c := range []kernelCounter{
		kernelCounterC_CALLS_SERVER, kernelCounterC_CALLS_CLIENT, kernelCounterC_CALLS_OWN,
		kernelCounterC_CALLS_OBSERVER, kernelCounterC_UNALIGNED,
	} {
		n += t.tally.counters[c]
	}
	return n
}
