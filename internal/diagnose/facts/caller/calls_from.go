package caller

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// CallsFrom are the calls of other hosts to the node, by their address, as far as the server's end of their connections
// was followed.
func CallsFrom(n *facts.Node) map[string]int64 {
	out := map[string]int64{}
	for _, name := range n.Rec.Names(recording.SourceTap, n.Address, recording.CallsFromPrefix) {
		if calls, ok := n.Rec.Series(recording.SourceTap, n.Address, name).Last(); ok {
			out[strings.TrimPrefix(name, recording.CallsFromPrefix)] = int64(calls)
		}
	}
	return out
}
