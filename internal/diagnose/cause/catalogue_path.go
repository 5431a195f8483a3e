package cause

// pathCauses: how callers use their connections, the path, and the kernel and the memory below the server.
var pathCauses = []Cause{
	nPlusOneRoundtrips,
	oversizedPipeline,
	multiplexBigReply,
	blockingOnSharedConn,
	nagleDelayedACK,
	receiverStall,
	idleConnBlackholed,
	softirqOnRedisCore,
	cowFaultsAfterFork,
	swapped,
}
