package facts

import (
	"cmp"
	"fmt"
	"strings"
)

// Server is the node's server, such as "redis 7.0.15"; empty: it does not say.
func (n *Node) Server() string { return n.Rec.ServerOf(n.Address) }

// ServerAtLeast reports whether the server is at least of a version of Redis; every Valkey is newer than Redis 7.2. A
// server of an unknown version is assumed to be new.
func ServerAtLeast(n *Node, major, minor int) bool {
	name, version, _ := strings.Cut(n.Server(), " ")
	order, ok := CompareVersion(version, major, minor)
	return order >= 0 || !ok || name == "valkey"
}

// VersionAtLeast reports whether a version, such as "9.23.0", is at least another; one that does not parse is assumed
// to be old.
func VersionAtLeast(version string, major, minor int) bool {
	order, ok := CompareVersion(version, major, minor)
	return order >= 0 && ok || major == 0 && minor == 0
}

// CompareVersion compares a version, such as "9.23.0", with another; ok is false where it does not parse.
func CompareVersion(version string, major, minor int) (order int, ok bool) {
	var a, b int
	_, err := fmt.Sscanf(version, "%d.%d", &a, &b)
	return cmp.Or(cmp.Compare(a, major), cmp.Compare(b, minor)), err == nil
}
