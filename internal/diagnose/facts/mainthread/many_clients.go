package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording/series"
)

// ManyClients is the number of clients from which a list of all takes milliseconds: one line takes about 1 µs.
// Bound: noted, a millisecond at 1 µs a line.
const ManyClients = 1000

// manyForInfo is the number of clients from which INFO counts: up to redis 4 it walked all clients, and where it is
// slow with so many, it still does.
// Bound: guess.
const manyForInfo = 10_000

// GrowsWithClients reports whether a command's time grew with the number of clients, and there are many of them
// (ManyClients; for INFO manyForInfo).
func GrowsWithClients(n *facts.Node, command string) bool {
	clients, _ := n.Series(series.ConnectedClients).Max()
	switch name, sub, _ := strings.Cut(command, " "); name {
	case "CLIENT":
		return clients >= ManyClients && (sub == "" || sub == "LIST" || sub == "KILL")
	case "INFO":
		return clients >= manyForInfo
	}
	return false
}
