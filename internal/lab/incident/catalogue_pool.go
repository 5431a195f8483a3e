package incident

// poolIncidents are about connections that are made again, or kept by too many.
var poolIncidents = []Incident{
	reconnectHerd,
	reconnectHerdKilled,
	dialHerd,
	dialHerdRedisPy,
	staleConnServerTimeout,
	staleConnServerTimeoutJedis,
	staleConnServerTimeoutV8,
	poolLeak,
	poolLeakGoRedis,
	poolOversized,
	poolOversizedRedigo,
}
