package ring_test

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestRealThrottling is TestRealScenario with another scenario.
func TestRealThrottling(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF)
	windowOf(t, "server-cfs-throttled")
}
