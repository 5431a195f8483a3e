package nodes

import (
	"cmp"
	"encoding/json"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
)

// SlotUse is what the slots of a node took of its time, as it counted that itself (CLUSTER SLOT-STATS).
type SlotUse struct {
	// Slots is how many it has.
	Slots int
	// Usec is the time of commands with keys in all of them, in microseconds.
	Usec float64
	// Busiest are the slots that took most of it, the first ones of them.
	Busiest []recording.SlotUse
}

// SlotUseOf is that of the watch; its Usec is 0 where the node did not count it.
func SlotUseOf(n *facts.Node) (u SlotUse) {
	by := map[int]recording.SlotUse{}
	for _, s := range n.Rec.Snapshots {
		var one recording.SlotStats
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != recording.SnapshotSlots ||
			json.Unmarshal([]byte(s.Body), &one) != nil || one.CPUUsec < 0 {
			continue
		}
		if s.TimeNs-one.Ns/2 < n.StartNs {
			continue // an incident's recording begins with what was known before
		}
		u.Slots = min(max(one.Slots, 0), cluster.SlotCount)
		u.Usec += float64(one.CPUUsec)
		for _, slot := range one.Busiest {
			if slot.Slot < 0 || slot.Slot >= cluster.SlotCount || slot.CPUUsec < 0 || slot.CPUUsec > one.CPUUsec {
				continue
			}
			sum := by[slot.Slot]
			slot.CPUUsec += sum.CPUUsec
			by[slot.Slot] = slot
		}
	}
	for _, slot := range by {
		u.Busiest = append(u.Busiest, slot)
	}
	slices.SortFunc(u.Busiest, func(a, b recording.SlotUse) int {
		return cmp.Or(cmp.Compare(b.CPUUsec, a.CPUUsec), cmp.Compare(a.Slot, b.Slot))
	})
	return u
}

// MostOfTime are the busiest slots that together took more than half of the time, and how much of it. Where those that
// are known took less, ok is false.
func (u SlotUse) MostOfTime() (slots []recording.SlotUse, share float64, ok bool) {
	for i, slot := range u.Busiest {
		if share += float64(slot.CPUUsec) / max(u.Usec, 1); share > degree.Most {
			return u.Busiest[:i+1], share, true
		}
	}
	return u.Busiest, share, false
}
