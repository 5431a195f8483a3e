package stacks

import (
	"strings"
	"testing"
)

// TestServer has stacks of servers of several versions. Names in brackets are of functions that a server does not
// export, as in the packages of Debian.
func TestServer(t *testing.T) {
	const (
		loop = "main > aeMain > aeProcessEvents > "
		cron = loop + "processTimeEvents > serverCron > "
		pre  = loop + "beforeSleep > "
		read = loop + "connSocketEventHandler > readQueryFromClient > processInputBuffer > processCommand > "
		call = read + "call > "
	)
	for want, all := range map[string][]string{
		"defrag loop": {
			cron + "activeDefragCycle > dictScanDefrag > je_free",                     // Redis 7.4
			"main > aeMain > [valkey-server] > kvstoreHashtableScanDefrag",            // Valkey 8.1
			loop + "processTimeEvents > activeDefragTimeProc > defragStageKvstoreAll", // Valkey 9.1
		},
		"expire loop": {cron + "databasesCron > activeExpireCycle > activeExpireCycleTryExpire"},
		"rehash loop": {
			cron + "databasesCron > kvstoreIncrementallyRehash > dictRehash",
			cron + "databasesCron > incrementallyRehash > dictRehashMilliseconds", // Redis 5.0
		},
		"evict loop": {
			read + "performEvictions > deleteEvictedKeyAndPropagate",
			read + "freeMemoryIfNeededAndSafe > freeMemoryIfNeeded", // Redis 6.0
		},
		"tracking loop": {
			pre + "trackingBroadcastInvalidationMessages > trackingBuildBroadcastReply",
			call + "setCommand > signalModifiedKey > trackingInvalidateKey",
		},
		"clients-cron loop":      {cron + "clientsCron > clientsCronResizeOutputBuffer"},
		"cluster loop":           {cron + "clusterCron > clusterSendPing"},
		"replication loop":       {cron + "replicationCron > feedReplicationBuffer"},
		"module loop":            {loop + "processTimeEvents > moduleTimerHandler > [busy.so]"},
		"aof loop":               {pre + "flushAppendOnlyFile > write"},
		"client-free loop":       {pre + "freeClientsInAsyncFreeQueue > freeClient"},
		"accept loop":            {loop + "acceptTcpHandler > acceptCommonHandler"},
		"keyspace-events loop":   {call + "setCommand > notifyKeyspaceEvent > pubsubPublishMessage > addReply"},
		"publish loop":           {call + "publishCommand > pubsubPublishMessage"},
		"resize loop":            {call + "msetCommand > dictAdd > _dictExpand"},
		"purge loop":             {call + "delCommand > je_free > je_arena_decay > pages_purge_lazy"},
		"lua command":            {call + "evalCommand > evalGenericCommand > luaCallFunction"},
		"module-command command": {call + "RedisModuleCommandDispatcher > [search.so]"},
		"command command":        {call + "getCommand"},
		"write serving": {
			pre + "handleClientsWithPendingWrites > writeToClient > _writeToClient",
			loop + "_writeToClient > writev", // Valkey 9.1
		},
		"io-threads serving": {pre + "handleClientsWithPendingWritesUsingThreads"},
		"wait serving":       {loop + "aeApiPoll > epoll_wait"},
		"": {
			cron + "cronUpdateMemoryStats > zmalloc_get_allocator_info",
			"main > aeMain > [redis-server] > [redis-server]",
		},
	} {
		for _, stack := range all {
			m, _ := Server().Of(strings.Split(stack, " > "))
			if got := strings.TrimSpace(m.ID + " " + m.State); got != want {
				t.Errorf("%s: got %q, want %q", stack, got, want)
			}
		}
	}
}
