package topology

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/server"
)

// Library is a client library that has connections to the cluster, and what it is known to do.
type Library struct {
	Library     string `json:"library"`
	Connections int    `json:"connections"` // on all nodes together, at the last listing of each
	Hosts       int    `json:"hosts"`
	Refreshes   string `json:"refreshes"` // how it refreshes its topology; empty where that is not known
	Option      string `json:"option"`    // what to set
}

// habit is how a library refreshes its topology, read in its source.
type habit struct {
	library         string // begins the library's name, in lower case
	everyone        bool   // asks all nodes at each refresh
	refreshes       string
	longer, trigger string // how to ask more rarely, and on events only
	replicas        string // how to ask replicas only
	seeds           string // how to ask some nodes only
}

// habits are those of the versions of 2025 and 2026; what older versions did otherwise is said.
var habits = []habit{
	{library: "lettuce", everyone: true, refreshes: "CLUSTER NODES and INFO of all nodes, on new connections; periodically only where the program enables it (60 s), and on events: by default from 7.0 on",
		longer:   "ClusterTopologyRefreshOptions.enablePeriodicRefresh(Duration.ofMinutes(5))",
		trigger:  "enableAllAdaptiveRefreshTriggers() in place of enablePeriodicRefresh (the default from Lettuce 7.0 on; at most one refresh in 5 s, before in 30 s)",
		replicas: "override RedisClusterClient.getTopologyRefreshSource() to give replicas only",
		seeds:    "ClusterTopologyRefreshOptions.dynamicRefreshSources(false): only the seeds are asked"},
	{library: "go-redis", refreshes: "CLUSTER SLOTS of one node, when a command finds the map older than 60 s (v8 to 9.21: 10 s), and on MOVED and ASK",
		longer:  "ClusterOptions.ClusterStateReloadInterval: 5 * time.Minute (from 9.18 on; the default is 60 s from 9.22 on)",
		trigger: "a long ClusterStateReloadInterval: MOVED and ASK reload the map anyway"},
	{library: "redisson", refreshes: "CLUSTER NODES of one node, masters first, every scanInterval (5 s)",
		longer: "ClusterServersConfig.setScanInterval(60_000)", trigger: "a longer scanInterval: it must be above 0"},
	{library: "ioredis", refreshes: "CLUSTER SLOTS of one node; every 5 s before version 5, from then on only on MOVED and lost connections",
		longer: "slotsRefreshInterval: 60000", trigger: "upgrade to ioredis 5 or newer, where slotsRefreshInterval is off"},
	{library: "rueidis", refreshes: "CLUSTER SLOTS of one node (CLUSTER SHARDS from Redis 8 on), on MOVED and lost connections; periodically only with ShardsRefreshInterval",
		longer: "ClusterOption.ShardsRefreshInterval: 5 * time.Minute", trigger: "ClusterOption.ShardsRefreshInterval: 0 (the default)"},
	{library: "valkey-go", refreshes: "as rueidis", longer: "ClusterOption.ShardsRefreshInterval: 5 * time.Minute", trigger: "ClusterOption.ShardsRefreshInterval: 0 (the default)"},
	{library: "jedis", refreshes: "CLUSTER SLOTS of one node on MOVED and failed connections; periodically only with topologyRefreshPeriod, and then of the first seed",
		longer: "topologyRefreshPeriod(Duration.ofMinutes(5))", trigger: "leave topologyRefreshPeriod out (the default)"},
	{library: "redis-py", refreshes: "CLUSTER SLOTS of one node, on every fifth MOVED and on failed connections",
		longer: "reinitialize_steps=20", trigger: "it does not ask periodically"},
	{library: "node-redis", refreshes: "CLUSTER SLOTS of one node on MOVED, on a new connection", longer: "it does not ask periodically", trigger: "it does not ask periodically"},
	{library: "se.redis", refreshes: "CLUSTER NODES every configCheckSeconds (60 s), and on MOVED", longer: "configCheckSeconds=300", trigger: "a longer configCheckSeconds: MOVED refreshes the map anyway"},
	{library: "glide", refreshes: "CLUSTER SLOTS of some random nodes every 60 s, compared by a hash", longer: "periodic checks: a longer interval", trigger: "periodic checks: disabled"},
}

// habitOf finds what is known of a library, by its name as the client gives it.
func habitOf(library string) (habit, bool) {
	name := strings.ToLower(library)
	for _, h := range habits {
		if strings.HasPrefix(name, h.library) || h.library == "glide" && strings.Contains(name, "glide") {
			return h, true
		}
	}
	return habit{}, false
}

// libraryOf is what the client says of its library, or what its name gives away.
func libraryOf(c server.Client) string {
	if c.LibName != "" {
		return strings.TrimSpace(c.LibName + " " + c.LibVer)
	}
	if strings.HasPrefix(c.Name, "lettuce#") {
		return "lettuce"
	}
	return ""
}

// libraries counts the connections of each library, whatever they do.
func libraries(s *Survey) []Library {
	count, hosts := map[string]int{}, map[string]map[string]bool{}
	for _, l := range s.Looks {
		for i := len(l.Ticks) - 1; i >= 0; i-- {
			if !l.Ticks[i].HasClients {
				continue
			}
			for _, c := range l.Ticks[i].Clients {
				lib := libraryOf(c)
				if hosts[lib] == nil {
					hosts[lib] = map[string]bool{}
				}
				count[lib]++
				hosts[lib][hostOf(c.Addr)] = true
			}
			break
		}
	}
	out := []Library{}
	for lib, n := range count {
		h, _ := habitOf(lib)
		out = append(out, Library{Library: lib, Connections: n, Hosts: len(hosts[lib]), Refreshes: h.refreshes, Option: h.longer})
	}
	slices.SortFunc(out, func(a, b Library) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Library, b.Library))
	})
	return out
}
