package incident

// clientIncidents are faults of the client: its host, its runtime, its connection pool. The server is well in all of them.
var clientIncidents = []Incident{
	clientCFSThrottled,
	clientCPUSaturated,
	clientEventLoopBlocked,
	clientGCPause,
	poolExhaustedWait,
	poolIdleReapRedial,
	poolMaxIdleChurn,
	timeoutDiscardChurn,
	handshakeExtraRTTs,
	poolTestOnBorrow,
	hiddenRetriesBackoff,
	hiddenRetriesBackoffRedisPy,
	noSocketTimeout,
	noSocketTimeoutIORedis,
	noSocketTimeoutLostReply,
	gomaxprocsOverQuota,
	gomaxprocsOverQuotaCore,
}
