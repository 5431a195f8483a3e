package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestSwap(t *testing.T) {
	calls := func(culprit string) edge {
		e := newPath()
		for i := range int64(10) {
			e.seen(pathClient, "MGET", i*1000*edgeMs, 5000, part{"server", "busy", 10, ""}, part{
				"server", "blocked",
				30, culprit,
			}, part{"server", "exec", 2, ""})
		}
		return e
	}
	swap := func(e edge, majflt, bytes float64) edge {
		return e.host(map[string]float64{"main.majflt": majflt}).level(recording.SourceHost, "process.swap_bytes",
			bytes).level(recording.SourceHost, "process.rss_bytes", 250e6)
	}
	limited := func(e edge) edge {
		for name, bytes := range map[string]float64{"memory.limit_bytes": 256e6, "memory.usage_bytes": 255e6} {
			e.Sample(recording.Sample{
				Source: recording.SourceHost, Subject: recording.CgroupPrefix + "/redis", Name: name, Value: bytes,
			})
		}
		return e
	}
	work := map[string]float64{
		"used_cpu_sys_main_thread": 1.3, "used_cpu_user_main_thread": 0.1,
		"total_reads_processed": 2000, "total_writes_processed": 2000,
	}
	explainEdge(t, find("swap"), []edgeCase{
		{
			name: "blocked in page faults, most of it in swap", rec: swap(calls("page fault"), 20_000, 600e6),
			found: true, evidence: "600.0 MB of the server are in swap", fix: "swappiness",
		},
		{
			name: "and the work of fetching", rec: swap(calls("page fault"), 20_000, 600e6).info(work), found: true,
			evidence: "91 %", fix: "swapoff",
		},
		{
			name: "the limit of its cgroup", rec: limited(swap(calls("page fault"), 20_000, 600e6)).
				snapshot(recording.SourceHost, "process", map[string]int{"pid": 4242}).
				snapshot(recording.SourceHost, "cgroup", map[string]int{"version": 1}), found: true,
			evidence: "its cgroup /redis is full",
			fix: "echo 1275000000 > /sys/fs/cgroup/memory/redis/memory.limit_in_bytes && " +
				"grep ' rw' /proc/4242/maps",
		},
		{
			name: "no server process is known", rec: limited(swap(calls("page fault"), 20_000, 600e6)), found: true,
			fix: "Give the host more memory",
		},
		{name: "old swap that is not used", rec: swap(calls("fdatasync"), 0, 600e6)},
		{name: "faults of files", rec: swap(calls("page fault"), 200, 0)},
		{name: "the disk of the append-only file", rec: swap(calls("fdatasync"), 3, 1e6)},
		{name: "nothing is slow", rec: swap(newPath(), 20_000, 600e6)},
	})
}
