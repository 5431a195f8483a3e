package cause

import (
	"slices"
)

// Catalogue lists every cause that is known to this program, by layer from the host to the clients.
func Catalogue() []Cause {
	return slices.Concat(hostCauses, loopCauses, edgeCauses, clientCauses, poolCauses, pathCauses, clusterCauses)
}

// hostCauses: the server's process is not running, or not well.
var hostCauses = []Cause{
	serverCFSThrottled,
	serverCPUContention,
	processFrozen,
}
