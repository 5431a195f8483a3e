package incident

// clientIncidents are faults of the client: its host, its runtime, its connection pool. The server is well in all of
// them.
var clientIncidents = []Incident{
	clientCFSThrottled,
	clientCPUSaturated,
	clientEventLoopBlocked,
	clientGCPause,
	cmdinfoOnceLock,
	cmdinfoOnceLockProfile,
	cmdinfoOnceLockRing,
	cmdinfoOnceLockRingValkey,
	poolExhaustedWait,
	poolIdleReapRedial,
	poolIdleReapRedialV8,
	poolMaxIdleChurn,
	timeoutDiscardChurn,
	handshakeExtraRTTs,
	tlsHandshakeStorm,
	dnsSlow,
	dnsSlowJob,
	dnsSlowLost,
	tlsHandshakeStormRedigo,
	poolTestOnBorrow,
	hiddenRetriesBackoff,
	hiddenRetriesBackoffRedisPy,
	noSocketTimeout,
	noSocketTimeoutIORedis,
	noSocketTimeoutLostReply,
	gomaxprocsOverQuota,
	gomaxprocsOverQuotaCore,
}
