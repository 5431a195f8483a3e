package cause

import (
	"slices"
	"strings"
	"sync"
)

// Catalogue lists every cause that this program knows, by layer from the host to the clients.
func Catalogue() []Cause { return slices.Clone(catalogue()) }

// Named are the cause with this id, else all whose ids begin with it, else all that contain it.
func Named(part string) []Cause {
	part = strings.ToLower(part)
	for _, fits := range []func(id string) bool{
		func(id string) bool { return id == part },
		func(id string) bool { return strings.HasPrefix(id, part) },
		func(id string) bool { return strings.Contains(id, part) },
	} {
		found := slices.DeleteFunc(Catalogue(), func(c Cause) bool { return !fits(c.ID) })
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// catalogue panics where a document has a mistake, which any test of a cause sees.
var catalogue = sync.OnceValue(func() []Cause {
	all, err := documented(documents, slices.Concat(hostCauses, loopCauses, edgeCauses, clientCauses, poolCauses,
		pathCauses, clusterCauses))
	if err != nil {
		panic(err)
	}
	return all
})

// hostCauses: the server's process cannot run.
var hostCauses = []Cause{serverCFSThrottled, serverCPUContention, processFrozen}

// loopCauses: the event loop is held by one command or job, or by the disk.
var loopCauses = []Cause{
	slowCommand, frameworkHiddenKeys, luaOrMultiLong, flushSync, syncFreeOfBigKey, bigKeyIO, activeExpireCycle,
	activeDefrag, evictionCycle, introspectionLoad, forkLatency, aofEverysecStall, aofFsyncAlways, waitOrMinReplicas,
	eventLoopBlocked, eventLoopBusy,
}

// edgeCauses: saturation, connections, limits, network.
var edgeCauses = []Cause{
	mainThreadSaturated, ioThreadsOversubscribed, manyClientsOverhead, acceptBacklogOverflow, shortLivedConnections,
	maxClients, outputBufferKill, serverUnavailable, serverRestarted, callsRefused, clientPauseOrWriteBlock,
	packetLossRTO, bandwidthSaturated, rttFloor, proxyCPUBound, lbHop,
}

// clientCauses: the caller's host, its runtime, its connection pool.
var clientCauses = []Cause{
	clientCFSThrottled, gomaxprocsOverQuota, clientCPUSaturated, clientGCPause, clientEventLoopBlocked, clientLockWait,
	cmdinfoOnceLock, poolExhaustedWait, poolIdleReapRedial, poolLifetimeRedial, poolMaxIdleChurn, timeoutDiscardChurn,
	handshakeExtraRTTs, tlsHandshakeStorm, dnsSlow, unreachableAddress, poolTestOnBorrow, hiddenRetriesBackoff,
	transactionConflicts, noSocketTimeout,
}

// poolCauses: connections that are opened again and again, or too many of them.
var poolCauses = []Cause{reconnectHerd, dialHerd, staleConnServerTimeout, poolLeak, poolOversized}

// pathCauses: how callers use their connections, the network path, and the kernel and memory below the server.
var pathCauses = []Cause{
	nPlusOneRoundtrips, oversizedPipeline, multiplexBigReply, blockingOnSharedConn, nagleDelayedACK, receiverStall,
	idleConnBlackholed, softirqOnRedisCore, cowFaultsAfterFork, swapped,
}

// clusterCauses: the cluster map and who asks for it, redirected calls, and nodes that are gone, hot or not ready.
var clusterCauses = []Cause{
	topologyRefreshStorm, movedRefreshStorm, inlineRediscovery, askRedirect, migrateBigKeyBlocks,
	codisSlotMigrationStall, failoverWindow, staleTopology, hotShard, fanoutSlowestShard, replicaRouting,
}
