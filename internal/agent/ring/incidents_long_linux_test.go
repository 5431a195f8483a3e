package ring_test

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestRealThrottling is TestRealIncident with another incident.
func TestRealThrottling(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF)
	windowOf(t, "server-cfs-throttled")
}
