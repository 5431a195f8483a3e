package scenario

import "slices"

// Catalogue lists every scenario, healthy loads last.
func Catalogue() []Scenario {
	return slices.Concat(hostScenarios, loopScenarios, edgeScenarios, clientScenarios, poolScenarios, pathScenarios,
		clusterScenarios, healthyLoads)
}

// Known lists the ids of the catalogue.
func Known() (ids []string) {
	for _, sc := range Catalogue() {
		ids = append(ids, sc.ID)
	}
	return ids
}

// Find returns the scenario with an id, also one of an application.
func Find(id string) (Scenario, bool) {
	for _, i := range Catalogue() {
		if i.ID == id {
			return i, true
		}
	}
	return findApp(id)
}

// hostScenarios: the process of the server does not run when it could.
var hostScenarios = []Scenario{
	serverCFSThrottled,
	serverCFSThrottledBursts,
	throttledShardAlone,
	serverCPUContention,
	processFrozen,
	processFrozenProxy,
	processFrozenEnvoy,
	processFrozenSince,
}

// loopScenarios: something holds the event loop of the server.
var loopScenarios = []Scenario{
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
	activeDefrag,
	evictionCycle,
	introspectionLoad,
	introspectionMonitor,
	forkLatency,
	aofEverysecStall,
	aofFsyncAlways,
	eventLoopBlocked,
	eventLoopBusy,
}

// edgeScenarios: saturation, connections, limits and the network.
var edgeScenarios = []Scenario{
	mainThreadSaturated,
	mainThreadSaturatedPipelined,
	acceptBacklogOverflow,
	shortLivedConnections,
	shortLivedConnectionsTLS,
	packetLossRTO,
	packetLossReplies,
	mtuBlackHole,
	mtuBlackHoleRequests,
	ioThreadsOversubscribed,
	clientPause,
	clientPauseWrite,
	writeBlockNoReplicas,
	waitOrMinReplicas,
	manyClientsOverhead,
	maxClients,
	outputBufferKill,
	serverUnavailable,
	serverRestarted,
	serverRestartedLoading,
	callsRefused,
	callsRefusedFull,
	callsRefusedNoSlots,
	callsRefusedTwoDead,
	bandwidthSaturated,
	rttFloor,
	proxyCPUBound,
	lbHop,
}

// clientScenarios: the host, the runtime or the connection pool of the client is at fault, and the server is not.
var clientScenarios = []Scenario{
	clientCFSThrottled,
	clientCPUSaturated,
	clientEventLoopBlocked,
	clientLockWait,
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
	unreachableAddress,
	tlsHandshakeStormRedigo,
	poolTestOnBorrow,
	hiddenRetriesBackoff,
	hiddenRetriesBackoffRedisPy,
	transactionConflicts,
	poolLifetimeRedial,
	noSocketTimeout,
	noSocketTimeoutIORedis,
	noSocketTimeoutLostReply,
	gomaxprocsOverQuota,
	gomaxprocsOverQuotaCore,
}

// poolScenarios: connections are opened again and again, or there are too many.
var poolScenarios = []Scenario{
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

// pathScenarios: how connections are used, the path, and the kernel and the memory below the server.
var pathScenarios = []Scenario{
	nPlusOneRoundtrips,
	oversizedPipeline,
	multiplexBigReply,
	blockingOnSharedConn,
	nagleDelayedACK,
	receiverStall,
	idleConnBlackholed,
	softirqOnRedisCore,
	cowFaultsAfterFork,
	swapScenario,
}

// clusterScenarios: the map of a cluster and its refreshes, redirects, and nodes that are gone, hot or not ready.
var clusterScenarios = []Scenario{
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
var healthyLoads = []Scenario{
	healthyIdle,
	healthyMixed,
	healthyPipelined,
	healthyBigValues,
	healthyBGSave,
	healthyCluster,
	healthyCodis,
	healthyBlockingConsumers,
	healthyWait,
	healthyTLSPool,
	healthyNarrowPath,
}
