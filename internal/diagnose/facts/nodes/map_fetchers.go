package nodes

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// waitsForMap says of libraries, by their sources, whether a call that is answered MOVED waits until the map is
// fetched.
//
// They wait: node-redis awaits _slots.rediscover(client); redis-py calls nodes_manager.initialize() on the calling
// thread; Jedis calls renewSlotCache there. They do not: ioredis sends the call on (tryConnection) and then calls
// refreshSlotsCache; go-redis sends it on and calls state.LazyReload concurrently; Lettuce refreshes adaptively on a
// thread of its own; rueidis sends it on and calls lazyRefresh concurrently. iovalkey and valkey-go are copies of two
// of them.
var waitsForMap = map[string]bool{
	"node-redis": true, "redis-py": true, "jedis": true,
	"ioredis": false, "iovalkey": false, "go-redis": false, "lettuce": false, "rueidis": false, "valkey-go": false,
}

// MapFetchers are the libraries that fetch the map: those that wait for it, and those that do not.
type MapFetchers struct {
	// by library: those that wait
	inline facts.NameCounts
	// Concurrent counts the libraries that do not wait.
	Concurrent facts.NameCounts
	// Source is the source that they are known from.
	Source string
	// KnownFrom says in words what shows them.
	KnownFrom string
}

// inlineLibrary is the library that waits; empty where most of what is known is others.
func (f MapFetchers) inlineLibrary() string {
	if f.inline.Total() > f.Concurrent.Total() {
		return f.inline.Top(1)[0]
	}
	return ""
}

// concurrentLibrary is the library that does not wait.
func (f MapFetchers) concurrentLibrary() string {
	if len(f.Concurrent) > 0 && f.inlineLibrary() == "" {
		return f.Concurrent.Top(1)[0]
	}
	return ""
}

func (f MapFetchers) known() bool { return len(f.inline)+len(f.Concurrent) > 0 }

func (f MapFetchers) add(library string, weight int) {
	switch waits, known := waitsForMap[library]; {
	case !known:
	case waits:
		f.inline[library] += weight
	default:
		f.Concurrent[library] += weight
	}
}

// fetchers are the libraries of the processes that were seen to fetch the map, each by its weight; else what the
// clients report; else those of all processes that call the nodes.
func fetchers(c *facts.Case, askers map[int]int) MapFetchers {
	if f := fetchersOf(c, askers, "the processes that ask for the map"); f.known() {
		return f
	}
	f := newMapFetchers(recording.SourceServer, "CLIENT LIST")
	for _, n := range c.Nodes {
		for _, cl := range caller.Clients(n) {
			f.add(caller.LibraryOfClient(cl), 1)
		}
	}
	if f.known() {
		return f
	}
	all := map[int]int{}
	for _, n := range c.Nodes {
		for _, caller := range caller.ClientCallers(n) {
			all[caller.PID]++
		}
		// without the tap: the processes that the host's files show connections of
		for _, p := range hosts.Processes(n.Case) {
			all[p.PID] = max(all[p.PID], 1)
		}
	}
	return fetchersOf(c, all, "the processes that call")
}

// fetchersOf are the libraries of processes on this host.
func fetchersOf(c *facts.Case, pids map[int]int, who string) MapFetchers {
	f := newMapFetchers(recording.SourceHost, who)
	own := librariesByPID(c)
	for pid, weight := range pids {
		var waits, goesOn bool
		for name := range own[pid] {
			inline, known := waitsForMap[name]
			waits, goesOn = waits || inline, goesOn || known && !inline
		}
		if waits && goesOn {
			continue // it has both: which of them asks is not known
		}
		for name := range own[pid] {
			f.add(name, weight)
		}
	}
	return f
}

func newMapFetchers(source, knownFrom string) MapFetchers {
	return MapFetchers{
		inline: facts.NameCounts{}, Concurrent: facts.NameCounts{}, Source: source, KnownFrom: knownFrom,
	}
}

// librariesByPID are those of each process: what its connections report; else what it is built with or has open; else
// what is installed for it.
func librariesByPID(c *facts.Case) map[int]facts.NameCounts {
	ranks := [3]map[int]facts.NameCounts{{}, {}, {}}
	put := func(rank, pid int, name string) {
		if ranks[rank][pid] == nil {
			ranks[rank][pid] = facts.NameCounts{}
		}
		ranks[rank][pid][name]++
	}
	for _, n := range c.Nodes {
		names := map[string]string{}
		for _, cl := range caller.Clients(n) {
			if name := caller.LibraryOfClient(cl); name != "" {
				names[cl.Addr] = name
			}
		}
		if len(names) == 0 {
			continue
		}
		for _, caller := range caller.Callers(n) {
			for _, k := range caller.Conns {
				if name := names[k.Client]; name != "" && caller.PID > 0 {
					put(0, caller.PID, name)
				}
			}
		}
	}
	for _, p := range hosts.Processes(c) {
		for _, l := range p.Libraries {
			rank := 1
			if l.How == recording.LibraryInstalled {
				rank = 2
			}
			put(rank, p.PID, l.Name)
		}
	}
	out := ranks[0]
	for _, rank := range ranks[1:] {
		for pid, names := range rank {
			if out[pid] == nil {
				out[pid] = names
			}
		}
	}
	return out
}

// namesSet is how many connections of the node's clients gave themselves a name. Neither end of the tap sees
// all of them: the client's misses those of a pipeline, the server's counts slowpath's own.
func namesSet(n *facts.Node) float64 {
	own := float64(connection.ProbeCallsOf(n, n.StartNs, n.EndNs).Fresh)
	by := mainthread.TapCallsBy(n, "CLIENT SETNAME")
	atServer := float64(by[recording.Server])
	if !n.Rec.OwnCallsApart() {
		atServer -= own
	}
	return max(float64(by[recording.Client]), atServer, n.Growth(series.CommandCalls("client|setname"))-own, 0)
}
