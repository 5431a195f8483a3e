package facts

import (
	"strings"
)

// stepsMost is the most MOVED replies after which a library that waits for the map fetches it: redis-py's
// reinitialize_steps is 5, and a call may fail twice.
const maxMovedPerFetch = 12.0

// inline is what is known of waits for the map.
type InlineFetch struct {
	Library           string // the one that waits, empty where none is known to
	ConcurrentLibrary string // the one that does not, where most of what asks for the map is known to be of such
	Fetchers          MapFetchers
	// by how its process treats connections: it does not say its name (before 7.2 the server does not keep it)
	Guessed       bool
	Calls         float64
	usec          float64
	MapConns      int   // connections that were opened for the map alone
	MapConnLifeNs int64 // how long they lived, in the median
	DataConns     int   // connections that were opened for calls
	OpeningNs     int64 // what each cost before its first call, in the median
	opened        float64
	Requesters    NameCounts
}

func (c *Case) InlineFetches() (in InlineFetch) {
	in.Requesters = NameCounts{}
	var lives, openings []*Conn
	lettuce := false
	comms, names, askers := NameCounts{}, 0.0, map[int]int{}
	for _, n := range c.Nodes {
		r := n.MapRefresh()
		in.Calls, in.usec, in.opened = in.Calls+r.Calls, in.usec+r.Usec, in.opened+r.ConnsOpened
		for who, k := range r.Requesters {
			in.Requesters[who] += k
			if pid := PIDOf(who); pid > 0 {
				askers[pid] += k
			}
		}
		lettuce = lettuce || r.Lettuce
		names += n.namesSet()
		for _, caller := range n.Callers() {
			for _, k := range caller.Opened() {
				switch {
				case k.openedForMap():
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
	in.MapConns, in.MapConnLifeNs = len(lives), PercentilesOf(lives, func(k *Conn) int64 {
		return k.CloseNs - k.OpenNs +
			k.DialNs
	}).Median
	in.DataConns, in.OpeningNs = len(openings), PercentilesOf(openings, (*Conn).OpeningNs).Median
	in.Fetchers = c.fetchers(askers)
	in.Library, in.ConcurrentLibrary = in.Fetchers.inlineLibrary(), in.Fetchers.concurrentLibrary()
	switch {
	case in.Library != "" || in.ConcurrentLibrary != "":
	case lettuce:
		in.ConcurrentLibrary = "lettuce"
	default:
		in.guess(comms, names, c.othersNamed())
	}
	return in
}

// forMap: it was opened for nothing but a question or two, and closed.
func (k *Conn) openedForMap() bool {
	return k.Handshake == nil && k.CloseNs > 0 && k.Calls > 0 && k.Calls <= maxMapConnCalls
}

// guess knows node-redis and redis-py by how they fetch the map. ioredis opens a connection for it, too, but gives it a
// name, and does not wait. Where other connections have names, too, that of the application's choice may be on all:
// then the two look alike.
func (in *InlineFetch) guess(comms NameCounts, names float64, othersNamed bool) {
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
func (c *Case) othersNamed() bool {
	for _, n := range c.Nodes {
		for _, cl := range n.Clients() {
			if cl.Name != "" && !IsMapCommand(strings.ToUpper(strings.ReplaceAll(cl.Cmd, "|", " "))) {
				return true
			}
		}
	}
	return false
}

// mapCalls is how many a connection has that was opened for the map: HELLO, AUTH, CLIENT SETINFO twice, CLIENT SETNAME,
// SELECT, and the question.
const maxMapConnCalls = 8

// ownNames is how many connections of slowpath itself have names, beside the probe's fresh ones.
const ownNamedConns = 4

// Waited reports whether the libraries of the case wait for the map, so far as can be told.
func (in InlineFetch) WaitsForMap(moved float64) bool {
	return in.Library != "" && in.Calls > 0 && in.Calls <= maxFetchesPerMoved*1.25*moved &&
		in.Calls*maxMovedPerFetch >= moved
}
