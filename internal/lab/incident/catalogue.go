package incident

import "slices"

// Catalogue lists every incident, healthy loads last.
func Catalogue() []Incident {
	return slices.Concat(hostIncidents, loopIncidents, edgeIncidents, clientIncidents, poolIncidents, pathIncidents,
		clusterIncidents, healthyLoads)
}

// Find returns the incident with an id, also one of an application.
func Find(id string) (Incident, bool) {
	for _, i := range Catalogue() {
		if i.ID == id {
			return i, true
		}
	}
	return findApp(id)
}

// hostIncidents: the process of the server does not run when it could.
var hostIncidents = []Incident{
	serverCFSThrottled,
	serverCFSThrottledBursts,
	throttledShardAlone,
	serverCPUContention,
	processFrozen,
	processFrozenProxy,
	processFrozenEnvoy,
	processFrozenSince,
}

// loopIncidents: something holds the event loop of the server.
var loopIncidents = []Incident{
	slowCommand,
	frameworkHiddenKeys,
	slowCommandNoSlowlog,
	luaLong,
	multiLong,
	flushSync,
	syncFree,
	syncFreeByExpiry,
	bigKeyIO,
	bigKeyIOCollection,
	activeExpireCycle,
	evictionCycle,
	introspectionLoad,
	introspectionMonitor,
	forkLatency,
	aofEverysecStall,
	aofFsyncAlways,
}

// edgeIncidents: saturation, connections, limits and the network.
var edgeIncidents = []Incident{
	mainThreadSaturated,
	mainThreadSaturatedPipelined,
	acceptBacklogOverflow,
	shortLivedConnections,
	shortLivedConnectionsTLS,
	packetLossRTO,
	packetLossReplies,
	ioThreadsOversubscribed,
	clientPause,
	clientPauseWrite,
	writeBlockNoReplicas,
	manyClientsOverhead,
	maxClients,
	serverUnavailable,
	serverRestarted,
	serverRestartedLoading,
	callsRefused,
	callsRefusedFull,
	callsRefusedNoSlots,
	callsRefusedTwoDead,
	rttFloor,
	proxyCPUBound,
	lbHop,
}

// clientIncidents: the host, the runtime or the connection pool of the client is at fault, and the server is not.
var clientIncidents = []Incident{
	clientCFSThrottled,
	clientCPUSaturated,
	clientEventLoopBlocked,
	clientGCPause,
	cmdinfoOnceLock,
	cmdinfoOnceLockProfile,
	cmdinfoOnceLockRing,
	cmdinfoOnceLockRingValkey,
	poolExhaustedWait,
	poolExhaustedWaitThreads,
	poolExhaustedWaitEventLoop,
	nPlusOneThreads,
	nPlusOneNear,
	poolIdleReapRedial,
	poolIdleReapRedialV8,
	poolIdleReapRedialFleet,
	poolIdleReapRedialTLS,
	poolMaxIdleChurn,
	timeoutDiscardChurn,
	handshakeExtraRTTs,
	tlsHandshakeStorm,
	dnsSlow,
	dnsSlowJob,
	dnsSlowLost,
	tlsHandshakeStormRedigo,
	poolTestOnBorrow,
	hiddenRetriesBackoff,
	hiddenRetriesBackoffRedisPy,
	noSocketTimeout,
	noSocketTimeoutIORedis,
	noSocketTimeoutLostReply,
	gomaxprocsOverQuota,
	gomaxprocsOverQuotaCore,
}

// poolIncidents: connections are opened again and again, or there are too many.
var poolIncidents = []Incident{
	reconnectHerd,
	reconnectHerdKilled,
	dialHerd,
	dialHerdRedisPy,
	staleConnServerTimeout,
	staleConnServerTimeoutJedis,
	staleConnServerTimeoutV8,
	poolLeak,
	poolLeakGoRedis,
	poolOversized,
	poolOversizedRedigo,
}

// pathIncidents: how connections are used, the path, and the kernel and the memory below the server.
var pathIncidents = []Incident{
	nPlusOneRoundtrips,
	oversizedPipeline,
	multiplexBigReply,
	blockingOnSharedConn,
	nagleDelayedACK,
	receiverStall,
	idleConnBlackholed,
	softirqOnRedisCore,
	cowFaultsAfterFork,
	swapIncident,
}

// clusterIncidents: the map of a cluster and its refreshes, redirects, and nodes that are gone, hot or not ready.
var clusterIncidents = []Incident{
	topologyRefreshStorm,
	topologyRefreshStorm300,
	movedRefreshStorm,
	movedRefreshStormGoRedis,
	askRedirect,
	askRedirectTryAgain,
	inlineRediscovery,
	inlineRediscoveryRedisPy,
	migrateBigKeyBlocks,
	migrateBigKeyStandalone,
	codisSlotMigrationStall,
	failoverWindow,
	failoverWindowJedis,
	failoverWindowBegun,
	staleTopologySilentMaster,
	staleTopologyGoRedis,
	staleTopologyLong,
	hotKey,
	hotTag,
	fanoutPipeline,
	fanoutMGET,
	fanoutProxy,
	replicaLoading,
	replicaReadOnly,
	replicaMasterDown,
}

// healthyLoads: nothing is wrong: whatever doctor finds here is a false alarm.
var healthyLoads = []Incident{
	healthyIdle,
	healthyMixed,
	healthyPipelined,
	healthyBigValues,
	healthyBGSave,
	healthyCluster,
	healthyCodis,
	healthyBlockingConsumers,
	healthyTLSPool,
}
