package server

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

// slotUses are what slots have had since the server began to count, by slot.
type slotUses map[int]recording.SlotUse

// slots is the state of CLUSTER SLOT-STATS.
type slots struct {
	atNs int64 // of the last reading; 0: there is none
	uses slotUses
}

const (
	clusterSlots = cluster.SlotCount
	// slotsAtOnce are asked for by one command: a millisecond of the server's time.
	slotsAtOnce = 2048
	slotsEvery  = time.Minute
	// perSlot of this server: measured 0.24 µs (8.2.3) and 0.39 to 0.47 µs (valkey 9.1.2).
	perSlot = 500 * time.Nanosecond
	// maxOfSlot bounds a counter: sums over all slots stay below an int64.
	maxOfSlot = 1 << 48
	// busiestSlots are recorded of each reading.
	busiestSlots = 16
)

// askSlots reads the counters of all slots of this server of a cluster: at the start, each minute and at the end. What
// is recorded are differences.
func (w *watch) askSlots(ctx context.Context, last bool) error {
	const spot = "CLUSTER SLOT-STATS"
	const setting = "cluster-slot-stats-enabled"
	assigned, known := w.in.numbers["cluster_slots_assigned"]
	now := w.Clock.Now()
	own := assigned / max(w.in.numbers["cluster_size"], 1)
	if len(w.slots.uses) > 0 {
		own = float64(len(w.slots.uses))
	}
	due := last || w.slots.atNs == 0 || now-w.slots.atNs >= int64(slotsEvery)
	if !known || !due || !w.refusals.allows(spot) || !w.offers(setting) || w.extras.settings[setting] == "no" ||
		!w.budget.take(now, time.Duration(own)*perSlot) {
		return nil
	}
	uses := slotUses{}
	for first := 0; first < clusterSlots; first += slotsAtOnce { // one by one: others are served in between
		cmds := [][]string{{
			"CLUSTER", "SLOT-STATS", "SLOTSRANGE", strconv.Itoa(first), strconv.Itoa(first + slotsAtOnce - 1),
		}}
		replies, at, err := w.ask(ctx, cmds)
		if err != nil {
			return err
		}
		w.cost.used(cmds, time.Duration(at.done-at.sent))
		if err := replies[0].Err(); err != nil {
			w.refusals.check(spot, err)
			return nil
		}
		uses.add(replies[0])
	}
	if used, ok := w.slots.since(uses, w.Clock.Now()); ok {
		w.snapshot(w.slots.atNs, recording.SnapshotSlots, recording.Detail(used))
	}
	return nil
}

// add reads a reply: pairs of a slot and its counters. Of a server that counts no time, it takes none.
func (u slotUses) add(v resp.Value) {
	for _, e := range v.Elems[:min(len(v.Elems), clusterSlots)] {
		if len(e.Elems) < 2 {
			continue
		}
		slot, ok := e.Elems[0].Integer()
		if !ok || slot < 0 || slot >= clusterSlots {
			continue
		}
		use, timed := recording.SlotUse{Slot: int(slot)}, false
		for k, value := range e.Elems[1].Pairs() {
			n, ok := value.Integer()
			if !ok || n < 0 || n > maxOfSlot {
				continue
			}
			switch k.Text() {
			case "cpu-usec":
				use.CPUUsec, timed = n, true
			case "network-bytes-in":
				use.InBytes = n
			case "network-bytes-out":
				use.OutBytes = n
			case "key-count":
				use.Keys = n
			}
		}
		if timed {
			u[use.Slot] = use
		}
	}
}

// since keeps a reading, and gives what was added to the one before; false where there is none, or the counters were
// reset. Slots that came or went are left out.
func (s *slots) since(now slotUses, atNs int64) (recording.SlotStats, bool) {
	before := *s
	*s = slots{atNs, now}
	out := recording.SlotStats{Ns: atNs - before.atNs}
	for slot, use := range now {
		was, known := before.uses[slot]
		if !known {
			continue
		}
		use.CPUUsec, use.InBytes, use.OutBytes = use.CPUUsec-was.CPUUsec, use.InBytes-was.InBytes,
			use.OutBytes-was.OutBytes
		if use.CPUUsec < 0 || use.InBytes < 0 || use.OutBytes < 0 {
			return recording.SlotStats{}, false
		}
		out.Slots++
		out.CPUUsec += use.CPUUsec
		if use.CPUUsec > 0 {
			out.Busiest = append(out.Busiest, use)
		}
	}
	slices.SortFunc(out.Busiest, func(a, b recording.SlotUse) int {
		return cmp.Or(cmp.Compare(b.CPUUsec, a.CPUUsec), cmp.Compare(a.Slot, b.Slot))
	})
	out.Busiest = out.Busiest[:min(len(out.Busiest), busiestSlots)]
	return out, out.Slots > 0
}
