package incident

// clusterIncidents are about the topology of a cluster: who asks for it, and calls that are sent on.
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
}
