package cause

// poolCauses: connections that are made again and again, or kept by too many.
var poolCauses = []Cause{
	reconnectHerd,
	dialHerd,
	staleConnServerTimeout,
	poolLeak,
	poolOversized,
}
