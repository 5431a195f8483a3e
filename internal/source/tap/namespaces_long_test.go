//go:build linux

package tap

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

// TestMemoryOfConnections is TestManyConnections with 10 000 of them, and logs the memory that the kernel takes for
// them (docs/overhead.md).
func TestMemoryOfConnections(t *testing.T) {
	needs.Long(t, needs.BPF, needs.RedisServer, needs.RedisCLI, needs.Benchmark)
	const each, most = 5_000, 6_000
	nodes := forMany(t, each)
	before := kernelMemory(t)
	closeAll := idle(t, nodes, each)
	sockets := kernelMemory(t) - before
	closeAll()
	before = kernelMemory(t)
	p := watchTaped(t, Options{Nodes: nodes, Connections: most})
	empty := kernelMemory(t)
	idle(t, nodes, each)
	full := kernelMemory(t)
	t.Logf("memory of the kernel: %d MiB for the programs, %d MiB for %d connections, %d MiB for %d of their ends",
		(empty-before)>>10, sockets>>10, len(nodes)*each, (full-empty-sockets)>>10, most)
	checkMany(t, p, nodes, each, most)
}

// kernelMemory is what the kernel uses of the memory, in KiB: what no program has and what is not free.
func kernelMemory(t *testing.T) (kib int) {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch f[0] {
		case "SUnreclaim:", "Percpu:", "VmallocUsed:":
			n, _ := strconv.Atoi(f[1]) // the kernel writes numbers
			kib += n
		}
	}
	return kib
}
