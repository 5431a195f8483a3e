//go:build linux

package tap

import (
	"slices"
	"testing"

	"slowpath/internal/recording"
)

// notLost are counters that say nothing of what was not seen, or only why: what was lost for that reason has a counter
// of its own.
var notLost = []kernelCounter{
	kernelCounterC_CALLS_SERVER, kernelCounterC_CALLS_CLIENT, kernelCounterC_CALLS_OWN, kernelCounterC_CALLS_OBSERVER,
	kernelCounterC_SLOW, kernelCounterC_SAMPLED, kernelCounterC_ALIGNED, kernelCounterC_LATE_ACKS,
	kernelCounterC_CONNS, kernelCounterC_THREADS, kernelCounterC_SEGMENTS, kernelCounterC_READS,
	kernelCounterC_PUSH, kernelCounterC_NOT_REDIS, // connections without calls
	kernelCounterC_BLOCKING,
	kernelCounterC_GARBAGE, kernelCounterC_EXCESS, kernelCounterC_IOVECS, kernelCounterC_NO_BUFFER,
}

// TestLossesAreComplete: every counter of the programs is one of a loss, or known to be none.
func TestLossesAreComplete(t *testing.T) {
	lost := []kernelCounter{kernelCounterC_DROPPED}
	for _, l := range losses {
		lost = append(lost, l.count...)
	}
	for c := range kernelCounterC_MAX {
		if slices.Contains(lost, c) == slices.Contains(notLost, c) {
			t.Errorf("counter %d is in both lists or in none", c)
		}
	}
}

// TestUnseen: what was lost of how much.
func TestUnseen(t *testing.T) {
	k := &Tap{recorder: &recorder{}, tally: tally{counters: make([]uint64, kernelCounterC_MAX)}}
	if got := k.unseen(); len(got) != 0 {
		t.Errorf("nothing was lost, and there is %+v", got)
	}
	for c, n := range map[kernelCounter]uint64{
		kernelCounterC_CALLS_SERVER: 60, kernelCounterC_UNALIGNED: 15, kernelCounterC_LOST: 5,
		kernelCounterC_SLOW: 10, kernelCounterC_UNREPORTED: 4, kernelCounterC_DROPPED: 1,
	} {
		k.tally.counters[c] = n
	}
	k.tally.taken = 3
	want := map[float64]bool{0.25: false, 0.4: true} // share, counted
	for _, u := range k.unseen() {
		if counted, ok := want[u.Share()]; !ok || counted != u.Counted {
			t.Errorf("%+v, share %v", u, u.Share())
		}
	}
	if n := len(k.unseen()); n != 3 {
		t.Errorf("%d rows", n)
	}
	if (recording.Unseen{Count: 3, Of: 2}).Share() != 1 {
		t.Error("a share above 1")
	}
}
