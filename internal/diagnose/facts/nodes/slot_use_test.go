package nodes_test

import (
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/recording"
)

// TestSlotUse: the minutes of a watch are added up; what was before it, or is damaged, counts for nothing.
func TestSlotUse(t *testing.T) {
	const node = "10.0.0.1:6379"
	rec := recording.New()
	rec.SetMeta(recording.MetaTarget, node)
	rec.SetMeta(recording.MetaStart, "60000000000")
	rec.SetMeta(recording.MetaEnd, "200000000000")
	take := func(atNs int64, body string) {
		rec.Snapshot(recording.Snapshot{
			TimeNs: atNs, Source: recording.SourceServer, Subject: node, Name: recording.SnapshotSlots, Body: body,
		})
	}
	minute := func(usec int64, busiest ...recording.SlotUse) string {
		return recording.Detail(recording.SlotStats{Ns: 60e9, Slots: 100, CPUUsec: usec, Busiest: busiest})
	}
	take(60e9, minute(9e6, recording.SlotUse{Slot: 9, CPUUsec: 9e6}))
	take(120e9, minute(1000, recording.SlotUse{Slot: 1, CPUUsec: 500}, recording.SlotUse{Slot: 2, CPUUsec: 100}))
	take(130e9, "{")
	take(180e9, minute(1000, recording.SlotUse{Slot: 2, CPUUsec: 900}, recording.SlotUse{Slot: 1, CPUUsec: 50}))
	take(190e9, minute(-5, recording.SlotUse{Slot: 3, CPUUsec: -9}))
	rec.Index()
	use := nodes.SlotUseOf(facts.New(rec).Nodes[0])
	if use.Usec != 2000 || use.Slots != 100 || len(use.Busiest) != 2 || use.Busiest[0].CPUUsec != 1000 ||
		use.Busiest[1].CPUUsec != 550 {
		t.Errorf("%+v", use)
	}
	if hot, share, ok := use.MostOfTime(); !ok || len(hot) != 2 || hot[0].Slot != 2 || share != 0.775 {
		t.Errorf("%v %v %v", hot, share, ok)
	}
}
