package incident

// edgeIncidents are about saturation, connections, limits and the network.
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
	rttFloor,
}
