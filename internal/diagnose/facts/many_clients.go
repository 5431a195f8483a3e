package facts

import (
	"strings"
)

const (
	// ManyClients is the number from which a list of all clients takes milliseconds: one line takes about 1 µs.
	ManyClients = 1000
)

// manyForInfo is the number from which INFO counts: up to redis 4 it walked all clients, and where it is slow with so
// many, it still does.
const manyForInfo = 10_000

// IsCrowdWork reports whether a command's time grew with the connections, and there are many.
func (n *Node) GrowsWithClients(command string) bool {
	clients, _ := n.Info("connected_clients").Max()
	switch name, sub, _ := strings.Cut(command, " "); name {
	case "CLIENT":
		return clients >= ManyClients && (sub == "" || sub == "LIST" || sub == "KILL")
	case "INFO":
		return clients >= manyForInfo
	}
	return false
}
