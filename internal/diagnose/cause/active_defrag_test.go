package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestActiveDefrag(t *testing.T) {
	sort := recording.ActivityDetail{Op: "SORT", Args: 2, Calls: 1, Client: loopClient}
	checkLoop(t, "active-defrag", []loopWant{
		{"T0, by the server's record", newLoopCase().info("total_active_defrag_time", 0, 60), true, false},
		{"T1, the thread seen busy", newLoopCase().busy().sampled(7, defragStack), true, false},
		{"T1, the state not seen", newLoopCase().sampled(7, defragStack), true, false},
		{"T2, after a command", newLoopCase().worked(sort).sampled(7, defragStack), true, false},
		{"most of it", newLoopCase().busy().sampled(7, defragStack, defragStack, defragStack, getStack), true, false},
		{"half of it", newLoopCase().busy().sampled(7, defragStack, getStack), false, false},
		{
			"the record, but the thread was elsewhere",
			newLoopCase().busy().info("total_active_defrag_time", 0, 60).sampled(7, vendorStack), false, false,
		},
		{"no record and no samples", newLoopCase().busy(), false, false},
		{"another job", newLoopCase().busy().sampled(7, expireStack), false, false},
		{
			"a thread that slept", newLoopCase().hosted(recording.KindBlocked, "wait4").sampled(7, defragStack), false,
			false,
		},
	})
}
