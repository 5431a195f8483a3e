package connection

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// NagleConns are the states of the clients' sockets by the address of the client: recording.NagleOn or NagleOff. One
// that was on for any connection of an address is on.
func NagleConns(n *facts.Node) map[string]string {
	out := map[string]string{}
	for _, caller := range caller.Callers(n) {
		for _, c := range caller.Conns {
			if c.Nagle != "" && out[c.Client] != recording.NagleOn {
				out[c.Client] = c.Nagle
			}
		}
	}
	return out
}
