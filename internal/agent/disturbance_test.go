package agent

import (
	"testing"

	"slowpath/internal/live"
)

// TestOwnDisturbance: calls that were slow while the agent began its watch again count as fast, those before and after
// it and failed ones as what they are.
func TestOwnDisturbance(t *testing.T) {
	var d disturbance
	slow := func() (out []int64) {
		var all []live.Second
		for at := int64(99); at < 107; at++ {
			all = append(all, live.Second{Unix: at, Calls: 100, Slow: 9, Failed: 1})
		}
		for _, one := range d.without(all) {
			if one.Failed != 1 || one.Calls != 100 {
				t.Errorf("%+v", one)
			}
			if one.Slow != 0 {
				out = append(out, one.Unix)
			}
		}
		return out
	}
	d.ends(100) // the first watch: nothing was watched before
	if got := slow(); len(got) != 8 {
		t.Errorf("without a second begin: %v", got)
	}
	d.begins(101)
	if got := slow(); len(got) != 2 {
		t.Errorf("while it begins: %v", got)
	}
	d.ends(102)
	if got := slow(); len(got) != 3 || got[2] != 106 {
		t.Errorf("after it: %v", got)
	}
}
