//go:build linux

package source

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestRestartsOfMonthsKeepNoFiles is TestRestartsKeepNoFiles with as many restarts as months bring.
func TestRestartsOfMonthsKeepNoFiles(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer)
	testRestarts(t, 200)
}
