package incident

import (
	"slices"
	"strconv"
)

// Catalogue lists every incident, those of a cause first.
func Catalogue() []Incident {
	return slices.Concat(hostIncidents, loopIncidents, edgeIncidents, clientIncidents, poolIncidents, pathIncidents,
		clusterIncidents, healthyLoads)
}

// hostIncidents keep the server's process from running.
var hostIncidents = []Incident{
	serverCFSThrottled,
	throttledShardAlone,
	serverCPUContention,
	processFrozen,
}

// Find gives the incident of a name.
func Find(id string) (Incident, bool) {
	for _, i := range Catalogue() {
		if i.ID == id {
			return i, true
		}
	}
	return Incident{}, false
}

func itoa(n int) string { return strconv.Itoa(n) }
