package server

import (
	"reflect"
	"testing"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// slotReply is an entry of CLUSTER SLOT-STATS as valkey 9.1.2 and Redis 8.2.3 send it.
func slotReply(slot, keys, usec, in, out int64) resp.Value {
	return arr(num(slot), arr(bulk("key-count"), num(keys), bulk("cpu-usec"), num(usec), bulk("network-bytes-in"),
		num(in), bulk("network-bytes-out"), num(out), bulk("memory-bytes"), num(1<<60)))
}

func TestSlotsSince(t *testing.T) {
	var s slots
	take := func(atNs int64, replies ...resp.Value) (recording.SlotStats, bool) {
		uses := slotUses{}
		for _, v := range replies {
			uses.add(v)
		}
		return s.since(uses, atNs)
	}
	if got, ok := take(5, arr(slotReply(0, 1, 1000, 10, 10), slotReply(7, 2, 50, 5, 5), slotReply(9, 1, 1, 1, 1))); ok {
		t.Errorf("a first reading gave %+v", got)
	}
	got, ok := take(10, arr(slotReply(0, 1, 1001, 20, 30)), arr(slotReply(7, 3, 9050, 105, 205),
		slotReply(8, 1, 5000, 1, 1)))
	want := recording.SlotStats{Ns: 5, Slots: 2, CPUUsec: 9001, Busiest: []recording.SlotUse{
		{Slot: 7, CPUUsec: 9000, InBytes: 100, OutBytes: 200, Keys: 3},
		{Slot: 0, CPUUsec: 1, InBytes: 10, OutBytes: 20, Keys: 1},
	}}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", ok, got)
	}
	if got, ok := take(15, arr(slotReply(7, 3, 40, 105, 205))); ok {
		t.Errorf("after CONFIG RESETSTAT %+v", got)
	}
	if got, ok := take(20, arr(slotReply(7, 3, 50, 106, 207))); !ok || got.Ns != 5 || got.CPUUsec != 10 {
		t.Errorf("%v %+v", ok, got)
	}
}

func TestSlotsOfAnyReply(t *testing.T) {
	many := make([]resp.Value, 3*clusterSlots)
	for i := range many {
		many[i] = slotReply(int64(i), 1<<62, 1<<48, 1<<62, 1<<62)
	}
	for name, v := range map[string]resp.Value{
		"huge":           arr(many...),
		"wrong types":    arr(num(1), bulk("x"), arr(bulk("a"), arr()), arr(num(1), num(2)), arr(arr(), arr())),
		"no such slot":   arr(slotReply(-1, 1, 1, 1, 1), slotReply(clusterSlots, 1, 1, 1, 1)),
		"not a number":   arr(arr(num(1), arr(bulk("cpu-usec"), bulk("x"))), arr(num(2), arr(bulk("cpu-usec")))),
		"below 0":        arr(slotReply(1, -1, -1, -1, -1)),
		"counts no time": arr(arr(num(1), arr(bulk("key-count"), num(5)))),
	} {
		uses := slotUses{}
		uses.add(v)
		if len(uses) > clusterSlots || name != "huge" && len(uses) > 0 {
			t.Errorf("%s: %d slots", name, len(uses))
		}
		s := slots{1, slotUses{}}
		for slot := range uses {
			s.uses[slot] = recording.SlotUse{Slot: slot}
		}
		if got, ok := s.since(uses, 2); ok && (got.CPUUsec <= 0 || len(got.Busiest) > busiestSlots) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
