package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording/series"
)

// ManyClients is the number of clients from which a list of all takes milliseconds.
const ManyClients = MinOversizedBatch

// GrowsWithClients reports whether a command's time grew with the number of clients, and there are many of them. Up to
// redis 4 INFO walked all clients, and where it is slow with still more of them, it does so again.
func GrowsWithClients(n *facts.Node, command string) bool {
	clients, _ := n.Series(series.ConnectedClients).Max()
	switch name, sub, _ := strings.Cut(command, " "); name {
	case "CLIENT":
		return clients >= ManyClients && (sub == "" || sub == "LIST" || sub == "KILL")
	case "INFO":
		return clients >= degree.Many*ManyClients
	}
	return false
}
