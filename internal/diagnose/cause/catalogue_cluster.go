package cause

// clusterCauses: the topology of a cluster, who asks for it, calls that are sent on to another node, and nodes that are
// gone, hot or not ready.
var clusterCauses = []Cause{
	topologyRefreshStorm,
	movedRefreshStorm,
	inlineRediscovery,
	askRedirect,
	migrateBigKeyBlocks,
	failoverWindow,
	staleTopology,
	hotShard,
	fanoutSlowestShard,
	replicaRouting,
}
