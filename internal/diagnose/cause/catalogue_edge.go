package cause

// edgeCauses: saturation, connections, limits, network.
var edgeCauses = []Cause{
	mainThreadSaturated,
	ioThreadsOversubscribed,
	manyClientsOverhead,
	acceptBacklogOverflow,
	shortLivedConnections,
	maxClients,
	clientPauseOrWriteBlock,
	packetLossRTO,
	rttFloor,
}
