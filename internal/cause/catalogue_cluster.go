package cause

// clusterCauses: who has which slots, who is there, and what callers know of it.
var clusterCauses = []Cause{
	failoverWindow,
	staleTopology,
	hotShard,
	replicaRouting,
}
