package live

import (
	"slices"

	"slowpath/internal/recording"
)

// CallerOf names the caller of a call as Callers does: the process of this host, or the host's address.
func (v *View) CallerOf(c recording.Call) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nameOf(v.keyOf(c.Conn, c.Client))
}

// SlowSince are the slow calls after the one with a number, the oldest first, and how many of them are not kept any
// more: more came than a view keeps.
func (v *View) SlowSince(number uint64) (calls []SlowCall, missed uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kept := v.slow[max(len(v.slow)-maxSlow, 0):]
	i, _ := slices.BinarySearchFunc(kept, number+1, func(s SlowCall, n uint64) int {
		if s.Number < n {
			return -1
		}
		return min(int(s.Number-n), 1)
	})
	kept = kept[i:]
	if len(kept) > 0 && kept[0].Number > number+1 {
		missed = kept[0].Number - number - 1
	}
	return slices.Clone(kept), missed
}
