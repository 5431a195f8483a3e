package incident

// healthyLoads are loads that hurt nobody: a doctor that finds something in them cries wolf.
var healthyLoads = []Incident{
	healthyIdle,
	healthyMixed,
	healthyPipelined,
	healthyBigValues,
	healthyBGSave,
	healthyCluster,
}
