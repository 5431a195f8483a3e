package nodes

import (
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
)

// InlineFetch is what is known of calls that wait until their library has fetched the cluster map.
type InlineFetch struct {
	// Library is the one that waits; empty where none is known to.
	Library string
	// ConcurrentLibrary is the one that does not wait, where most of what fetches the map is known to be that.
	ConcurrentLibrary string
	// Fetchers are all libraries that fetch the map.
	Fetchers MapFetchers
	// Guessed says that Library or ConcurrentLibrary is known only by how its process treats connections: it does not
	// report its name (before 7.2 the server does not keep it).
	Guessed bool
	// Calls is the number of calls that fetched the map.
	Calls float64
	// MapConns is the number of connections that were opened for the map alone.
	MapConns int
	// MapConnLifeNs is how long they lived in nanoseconds, in the median.
	MapConnLifeNs int64
	// DataConns is the number of connections that were opened for calls.
	DataConns int
	// OpeningNs is what each of those cost before its first call in nanoseconds, in the median.
	OpeningNs int64
	// Requesters is how often each process or host was seen to fetch the map.
	Requesters facts.NameCounts
}

// InlineFetches are those of all nodes together.
func InlineFetches(c *facts.Case) (in InlineFetch) {
	in.Requesters = facts.NameCounts{}
	var lives, openings []*caller.Conn
	lettuce := false
	comms, names, askers := facts.NameCounts{}, 0.0, map[int]int{}
	for _, n := range c.Nodes {
		r := MapRefreshOf(n)
		in.Calls += r.Calls
		for who, k := range r.Requesters {
			in.Requesters[who] += k
			if pid := hosts.PIDOf(who); pid > 0 {
				askers[pid] += k
			}
		}
		lettuce = lettuce || r.Lettuce
		names += namesSet(n)
		for _, caller := range caller.Callers(n) {
			for _, k := range caller.Opened() {
				switch {
				case k.OpenedForMap():
					lives = append(lives, k)
					askers[caller.PID]++
				case k.Handshake != nil:
					openings = append(openings, k)
				default:
					continue
				}
				comms[caller.Comm]++
			}
		}
	}
	life := func(k *caller.Conn) int64 { return k.CloseNs - k.OpenNs + k.DialNs }
	in.MapConns, in.MapConnLifeNs = len(lives), caller.PercentilesOf(lives, life).Median
	in.DataConns, in.OpeningNs = len(openings), caller.PercentilesOf(openings, (*caller.Conn).OpeningNs).Median
	in.Fetchers = fetchers(c, askers)
	in.Library, in.ConcurrentLibrary = in.Fetchers.inlineLibrary(), in.Fetchers.concurrentLibrary()
	switch {
	case in.Library != "" || in.ConcurrentLibrary != "":
	case lettuce:
		in.ConcurrentLibrary = "lettuce"
	default:
		in.guess(comms, names, othersNamed(c))
	}
	return in
}

// guess recognises node-redis and redis-py by how they fetch the map. ioredis opens a connection for it as well, but
// gives it a name, and does not wait. Where other connections have names too, the application may name all of them:
// then the two look alike.
func (in *InlineFetch) guess(comms facts.NameCounts, names float64, othersNamed bool) {
	for comm := range comms {
		opened := strings.HasPrefix(comm, "node") && float64(in.MapConns) >= in.Calls/2
		switch {
		case opened && names < in.Calls/2:
			in.Library, in.Guessed = "node-redis", true
		case opened && !othersNamed:
			in.ConcurrentLibrary, in.Guessed = "ioredis", true
		case strings.HasPrefix(comm, "python") && float64(in.DataConns) >= in.Calls/2:
			in.Library, in.Guessed = "redis-py", true
		}
	}
}

// othersNamed reports whether connections have names that stay; those for the map are gone when CLIENT LIST is read.
func othersNamed(c *facts.Case) bool {
	for _, n := range c.Nodes {
		for _, cl := range caller.Clients(n) {
			if cl.Name != "" && !facts.IsMapCommand(strings.ToUpper(strings.ReplaceAll(cl.Cmd, "|", " "))) {
				return true
			}
		}
	}
	return false
}

// WaitsForMap reports whether the libraries of the case wait for the map after MOVED replies, as far as is known: they
// fetch it once for each, or for many of them: redis-py's reinitialize_steps is 5, and a call may fail twice.
func (in InlineFetch) WaitsForMap(moved float64) bool {
	return in.Library != "" && in.Calls > 0 && degree.NearlyAll*in.Calls <= moved && degree.Many*in.Calls >= moved
}
