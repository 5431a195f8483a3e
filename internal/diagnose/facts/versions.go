package facts

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
)

// Since reports whether the server is at least of a version of Redis; every Valkey is newer than Redis 7.2. A server
// that does not say is taken for a new one.
func ServerAtLeast(n *Node, major, minor int) bool {
	name, version, _ := strings.Cut(n.Rec.Meta[recording.MetaServer], " ")
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil || name == "valkey" {
		return true
	}
	return a > major || a == major && b >= minor
}

// AtLeast compares "9.23.0" with a version; one that does not read is taken for an old one.
func VersionAtLeast(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil {
		return major == 0 && minor == 0
	}
	return a > major || a == major && b >= minor
}
