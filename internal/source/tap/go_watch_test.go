//go:build linux

package tap

import (
	"slices"
	"testing"
)

// TestHooksOfGoProgramsKeepTheBudget: those that cost most go first, and no more than has to.
func TestHooksOfGoProgramsKeepTheBudget(t *testing.T) {
	cost := map[uint32]float64{1: 0.01, 2: 0.05, 3: 0.02, 4: 0}
	for _, tt := range []struct {
		budget float64
		want   []uint32
	}{
		{0, nil},
		{0.08, nil},
		{0.03, []uint32{2}},
		{0.025, []uint32{2, 3}},
		{0.001, []uint32{2, 3, 1}},
	} {
		if got := tooExpensive(cost, tt.budget); !slices.Equal(got, tt.want) {
			t.Errorf("of %g: %v are given up, not %v", tt.budget, got, tt.want)
		}
	}
}
