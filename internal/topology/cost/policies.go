package cost

import (
	"fmt"
	"strings"
	"time"
)

// RefreshPolicy is how a library refreshes the map, read in its source.
type RefreshPolicy struct {
	Library   string // begins the library's name, in lower case
	AskAll    bool   // asks all nodes at each refresh
	Refreshes string
	// Longer is how to refresh less often; in it {java}, {go}, {ms} and {s} stand for a period.
	Longer   string
	Trigger  string // how to refresh on events only
	Replicas string // how to ask replicas only
	Seeds    string // how to ask the seed nodes only
}

// policies are those of the versions of 2025 and 2026, with notes on older ones.
var policies = []RefreshPolicy{
	{
		Library: "lettuce", AskAll: true, Refreshes: "CLUSTER NODES and INFO of all nodes, on new connections; " +
			"periodically only if the program enables it (60 s), and on events: by default from 7.0",
		Longer: "ClusterTopologyRefreshOptions.enablePeriodicRefresh({java})",
		Trigger: "enableAllAdaptiveRefreshTriggers() instead of enablePeriodicRefresh (the default from Lettuce 7.0; " +
			"at most one refresh in 5 s, before 7.0 in 30 s)",
		Replicas: "override RedisClusterClient.getTopologyRefreshSource() to return replicas only",
		Seeds:    "ClusterTopologyRefreshOptions.dynamicRefreshSources(false): only the seeds are asked",
	},
	{
		Library: "go-redis", Refreshes: "CLUSTER SLOTS of one node, when a command finds the map older than 60 s (v8 " +
			"to 9.21: 10 s), and on MOVED and ASK",
		Longer:  "ClusterOptions.ClusterStateReloadInterval: {go} (from 9.18; default 60 s from 9.22)",
		Trigger: "a long ClusterStateReloadInterval: MOVED and ASK reload the map anyway",
	},
	{
		Library: "redisson", Refreshes: "CLUSTER NODES of one node, masters first, every scanInterval (5 s)",
		Longer: "ClusterServersConfig.setScanInterval({ms})", Trigger: "a longer scanInterval: it must be above 0",
	},
	{
		Library: "ioredis", Refreshes: "CLUSTER SLOTS of one node; every 5 s before version 5, from version 5 only " +
			"on MOVED and lost connections",
		Longer: "slotsRefreshInterval: {ms}", Trigger: "upgrade to ioredis 5 or newer, where slotsRefreshInterval " +
			"is off",
	},
	{
		Library: "rueidis", Refreshes: "CLUSTER SLOTS of one node (CLUSTER SHARDS from Redis 8), on MOVED and lost " +
			"connections; periodically only with ShardsRefreshInterval",
		Longer:  "ClusterOption.ShardsRefreshInterval: {go}",
		Trigger: "ClusterOption.ShardsRefreshInterval: 0 (the default)",
	},
	{
		Library: "valkey-go", Refreshes: "like rueidis", Longer: "ClusterOption.ShardsRefreshInterval: {go}",
		Trigger: "ClusterOption.ShardsRefreshInterval: 0 (the default)",
	},
	{
		Library: "jedis", Refreshes: "CLUSTER SLOTS of one node on MOVED and failed connections; periodically only " +
			"with topologyRefreshPeriod, and then of the first seed",
		Longer: "topologyRefreshPeriod({java})", Trigger: "leave topologyRefreshPeriod out (the " +
			"default)",
	},
	{
		Library: "redis-py", Refreshes: "CLUSTER SLOTS of one node, on every fifth MOVED and on failed connections",
		Longer: "reinitialize_steps=20", Trigger: "it does not refresh periodically",
	},
	{
		Library: "node-redis", Refreshes: "CLUSTER SLOTS of one node on MOVED, on a new connection",
		Longer: "it does not refresh periodically", Trigger: "it does not refresh periodically",
	},
	{
		Library: "se.redis", Refreshes: "CLUSTER NODES every configCheckSeconds (60 s), and on MOVED",
		Longer: "configCheckSeconds={s}", Trigger: "a longer configCheckSeconds: MOVED refreshes the map anyway",
	},
	{
		Library: "glide", Refreshes: "CLUSTER SLOTS of some random nodes every 60 s, compared by a hash",
		Longer: "periodic checks: a longer interval", Trigger: "periodic checks: disabled",
	},
}

// LongerFor is how to refresh with that period, as the library's setting of it.
func (p RefreshPolicy) LongerFor(period time.Duration) string {
	java, golang := fmt.Sprintf("Duration.ofMillis(%d)", period.Milliseconds()), fmt.Sprintf("%d * time.Millisecond",
		period.Milliseconds())
	switch {
	case period%time.Minute == 0:
		java, golang = fmt.Sprintf("Duration.ofMinutes(%d)", period/time.Minute), fmt.Sprintf("%d * time.Minute",
			period/time.Minute)
	case period%time.Second == 0:
		java, golang = fmt.Sprintf("Duration.ofSeconds(%d)", period/time.Second), fmt.Sprintf("%d * time.Second",
			period/time.Second)
	}
	return strings.NewReplacer("{java}", java, "{go}", golang, "{ms}", fmt.Sprint(period.Milliseconds()),
		"{s}", fmt.Sprint(int64((period+time.Second-1)/time.Second))).Replace(p.Longer)
}

// PolicyOf finds the policy of a library by its name in CLIENT LIST.
func PolicyOf(library string) (RefreshPolicy, bool) {
	name := strings.ToLower(library)
	for _, h := range policies {
		if strings.HasPrefix(name, h.Library) || h.Library == "glide" && strings.Contains(name, "glide") {
			return h, true
		}
	}
	return RefreshPolicy{}, false
}
