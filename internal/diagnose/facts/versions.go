package facts

import (
	"fmt"
	"strings"
)

// Server is the node's server, such as "redis 7.0.15"; empty: it does not say.
func (n *Node) Server() string { return n.Rec.ServerOf(n.Address) }

// ServerAtLeast reports whether the server is at least of a version of Redis; every Valkey is newer than Redis 7.2. A
// server of an unknown version is assumed to be new.
func ServerAtLeast(n *Node, major, minor int) bool {
	name, version, _ := strings.Cut(n.Server(), " ")
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil || name == "valkey" {
		return true
	}
	return a > major || a == major && b >= minor
}

// VersionAtLeast reports whether a version, such as "9.23.0", is at least another; one that does not parse is assumed
// to be old.
func VersionAtLeast(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil {
		return major == 0 && minor == 0
	}
	return a > major || a == major && b >= minor
}
