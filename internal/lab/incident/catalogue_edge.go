package incident

// edgeIncidents are about saturation, connections, limits and the network.
var edgeIncidents = []Incident{}
