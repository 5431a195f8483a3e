package incident

// clusterIncidents are about a cluster as a whole: who has which slots, who is there, and what clients know of it.
var clusterIncidents = []Incident{
	failoverWindow,
	failoverWindowJedis,
	failoverWindowBegun,
	staleTopologySilentMaster,
	staleTopologyGoRedis,
	staleTopologyLong,
	hotKey,
	hotTag,
	replicaLoading,
	replicaReadOnly,
	replicaMasterDown,
}
