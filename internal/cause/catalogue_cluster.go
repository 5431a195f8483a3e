package cause

// clusterCauses: the topology of a cluster, who asks for it, and calls that are sent on to another node.
var clusterCauses = []Cause{
	topologyRefreshStorm,
	movedRefreshStorm,
	inlineRediscovery,
	askRedirect,
	migrateBigKeyBlocks,
}
