package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// Refusals counts the connections of this watch that were refused.
func (n *Node) MaxclientsRefusals() int {
	refused := 0
	for _, e := range n.Rec.Events {
		if e.Kind != recording.KindError || e.Subject != n.Address {
			continue
		}
		d := recording.DetailOf[recording.ErrorDetail](e)
		// A server that ended, or a proxy, closes before the first reply as well: the hint at maxclients that slowpath
		// then gives is no refusal.
		if strings.Contains(d.Message, "maxclients is reached") || strings.Contains(d.Message,
			"max number of clients") {
			refused++
		}
	}
	return refused
}
