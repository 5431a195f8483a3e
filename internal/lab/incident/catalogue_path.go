package incident

// pathIncidents are about what lies between a caller and its reply: how it uses its connections, the path, and the
// kernel and the memory below the server.
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
