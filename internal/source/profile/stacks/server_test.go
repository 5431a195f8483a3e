package stacks

import (
	"strings"
	"testing"
)

// Stacks of servers of several versions, from main on. Names in brackets are of functions that a server does not
// export, as in the packages of Debian.
func TestServer(t *testing.T) {
	const cron = "main > aeMain > aeProcessEvents > processTimeEvents > serverCron > "
	const read = "main > aeMain > aeProcessEvents > connSocketEventHandler > readQueryFromClient > processInputBuffer > "
	const before = "main > aeMain > aeProcessEvents > beforeSleep > "
	for stack, want := range map[string]string{
		cron + "activeDefragCycle > dictScanDefrag > je_free":                                               "defrag loop",
		"main > aeMain > [valkey-server] > [valkey-server] > kvstoreHashtableScanDefrag":                    "defrag loop",
		cron + "databasesCron > activeExpireCycle > activeExpireCycleTryExpire":                             "expire loop",
		cron + "databasesCron > kvstoreIncrementallyRehash > dictRehash":                                    "rehash loop",
		cron + "databasesCron > incrementallyRehash > dictRehashMilliseconds":                               "rehash loop",
		cron + "clientsCron > clientsCronResizeOutputBuffer":                                                "clients-cron loop",
		cron + "clusterCron > clusterSendPing":                                                              "cluster loop",
		cron + "replicationCron > feedReplicationBuffer":                                                    "replication loop",
		cron + "cronUpdateMemoryStats > zmalloc_get_allocator_info":                                         "",
		"main > aeMain > processTimeEvents > moduleTimerHandler > [busy.so]":                                "module loop",
		before + "trackingBroadcastInvalidationMessages > trackingBuildBroadcastReply":                      "tracking loop",
		before + "flushAppendOnlyFile > write":                                                              "aof loop",
		before + "freeClientsInAsyncFreeQueue > freeClient":                                                 "client-free loop",
		before + "handleClientsWithPendingWrites > writeToClient > _writeToClient":                          "write serving",
		before + "handleClientsWithPendingWritesUsingThreads":                                               "io-threads serving",
		read + "processCommandAndResetClient > processCommand > call > getCommand":                          "command command",
		read + "processCommand > performEvictions > deleteEvictedKeyAndPropagate":                           "evict loop",
		read + "processCommand > freeMemoryIfNeededAndSafe > freeMemoryIfNeeded":                            "evict loop",
		read + "processCommand > call > setCommand > notifyKeyspaceEvent > pubsubPublishMessage > addReply": "keyspace-events loop",
		read + "processCommand > call > publishCommand > pubsubPublishMessage":                              "publish loop",
		read + "processCommand > call > setCommand > signalModifiedKey > trackingInvalidateKey":             "tracking loop",
		read + "processCommand > call > evalCommand > evalGenericCommand > luaCallFunction":                 "lua command",
		read + "processCommand > call > RedisModuleCommandDispatcher > [search.so]":                         "module-command command",
		read + "processCommand > call > msetCommand > dictAdd > _dictExpand":                                "resize loop",
		read + "processCommand > call > delCommand > je_free > je_arena_decay > pages_purge_lazy":           "purge loop",
		"main > aeMain > aeProcessEvents > acceptTcpHandler > acceptCommonHandler":                          "accept loop",
		"main > aeMain > aeProcessEvents > aeApiPoll > epoll_wait":                                          "wait serving",
		"main > aeMain > [redis-server] > [redis-server]":                                                   "",
	} {
		m, _ := Server().Of(strings.Split(stack, " > "))
		if got := strings.TrimSpace(m.ID + " " + m.State); got != want {
			t.Errorf("%s\n got %q, want %q", stack, got, want)
		}
	}
}
