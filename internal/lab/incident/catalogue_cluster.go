package incident

// clusterIncidents are about the topology of a cluster: who asks for it, calls that are sent on, and nodes that are
// gone, hot or not ready.
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
