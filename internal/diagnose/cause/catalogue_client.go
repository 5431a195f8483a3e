package cause

// clientCauses: the caller's host, its runtime, its connection pool.
var clientCauses = []Cause{
	clientCFSThrottled,
	gomaxprocsOverQuota,
	clientCPUSaturated,
	clientGCPause,
	clientEventLoopBlocked,
	cmdinfoOnceLock,
	poolExhaustedWait,
	poolIdleReapRedial,
	poolMaxIdleChurn,
	timeoutDiscardChurn,
	handshakeExtraRTTs,
	tlsHandshakeStorm,
	dnsSlow,
	poolTestOnBorrow,
	hiddenRetriesBackoff,
	noSocketTimeout,
}
