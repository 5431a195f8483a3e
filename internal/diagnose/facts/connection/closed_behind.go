package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// Behind is the connection of a proxy to a server behind it.
type Behind struct {
	// Caller is the proxy.
	Caller string
	// Node is the address of the server.
	Node string
}

// closeBehind is when the server of one was closed by its server.
type closeBehind struct {
	Behind
	atNs int64
}

// ClosedBehind finds what a server behind the node, another watched one, closed right before a time: a proxy closes its
// client's connection at once then. False for nothing.
func ClosedBehind(n *facts.Node, atNs int64) (b Behind, ok bool) {
	list := facts.Once(n, "closed behind", findClosedBehind)
	i, _ := slices.BinarySearchFunc(list, atNs+1, func(c closeBehind, at int64) int { return cmp.Compare(c.atNs, at) })
	if i == 0 || atNs-list[i-1].atNs > int64(degree.AtOnce) {
		return b, false
	}
	return list[i-1].Behind, true
}

// findClosedBehind finds all that the servers of other nodes closed, in order of time.
func findClosedBehind(n *facts.Node) (out []closeBehind) {
	for _, other := range n.Nodes {
		if other == n || other.IsProxy() {
			continue
		}
		for _, c := range caller.Callers(other) {
			for _, k := range c.Conns {
				if k.ServerClosedNs > 0 {
					out = append(out, closeBehind{Behind{c.Name, other.Address}, k.ServerClosedNs})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b closeBehind) int { return cmp.Compare(a.atNs, b.atNs) })
	return out
}
