package facts

import "testing"

// TestOnce: a fact is found once, also where there is nothing to find.
func TestOnce(t *testing.T) {
	var o once[[]int]
	found := 0
	find := func() []int {
		found++
		return nil
	}
	o.of(find)
	if o.of(find) != nil || found != 1 {
		t.Errorf("found %d times", found)
	}
}
