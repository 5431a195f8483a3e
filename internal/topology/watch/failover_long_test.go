package watch

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/cluster"
)

func TestFailoverByCommand(t *testing.T) {
	needs.Long(t, needs.RedisServer)
	w := watchCluster(t, servers.Redis7015, 3, 1, soon, Options{})
	w.takeOver(w.cluster.Nodes[4])
	e := w.awaitEvent("the end", func(e Event) bool { return e.Kind == FailoverEnded })
	if e.From != w.cluster.Nodes[1].Addr || e.To != w.cluster.Nodes[4].Addr || e.Node != w.ids[4] ||
		cluster.FormatRanges(e.Slots) != "5461-10921" {
		t.Errorf("%+v", e)
	}
	if all := w.seenEvents(); len(all) != 2 || all[0].Kind != FailoverStarted || all[0].Node != w.ids[1] ||
		all[0].From != e.From {
		t.Errorf("got %v", all)
	}
	// and back
	w.takeOver(w.cluster.Nodes[1])
	w.awaitEvent("the way back", func(e Event) bool { return e.Kind == FailoverEnded && e.Node == w.ids[1] })
	w.only(FailoverStarted, FailoverEnded)
}
