//go:build linux

package tap

import "testing"

// TestOpsFor: more nodes have more commands, and their histograms stay within 2 MiB per CPU and 64 MiB for all.
func TestOpsFor(t *testing.T) {
	for _, c := range []struct {
		nodes, cpus int
		want        uint32
	}{
		{0, 1, 128},
		{1, 4, 128},
		{2, 4, 192},
		{64, 2, 512},
		{64, 32, 512},
		{64, 64, 256},
		{64, 128, 128},
		{64, 1024, 128},
		{1, 0, 128},
	} {
		if got := opsFor(c.nodes, c.cpus); got != c.want {
			t.Errorf("%d nodes, %d CPUs: %d, want %d", c.nodes, c.cpus, got, c.want)
		}
	}
}
