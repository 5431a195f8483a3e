package cause

// edgeCauses: saturation, connections, limits, network.
var edgeCauses = []Cause{}
