package nodes

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// MaxclientsRefusals counts slowpath's own connections that the server refused because of maxclients.
func MaxclientsRefusals(n *facts.Node) int {
	refused := 0
	for _, e := range n.Rec.Events {
		if e.Kind != recording.KindError || e.Subject != n.Address {
			continue
		}
		d := recording.DetailOf[recording.ErrorDetail](e)
		// A server that ended, or a proxy, closes before the first reply as well: the hint at maxclients that slowpath
		// then gives is no refusal.
		if strings.Contains(d.Message, "maxclients is reached") ||
			strings.Contains(d.Message, "max number of clients") {
			refused++
		}
	}
	return refused
}

// RefusedSince counts the connections that this node's host refused after a time, because nobody listened.
func RefusedSince(n *facts.Node, after int64) (count int) {
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if e.TimeNs >= after && e.Reason == recording.CloseRefused {
			count++
		}
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceProbe && c.EndNs >= after &&
			strings.Contains(c.Error, "connection refused") {
			count++
		}
	}
	return count
}
