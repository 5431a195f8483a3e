package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestCowFaultsAfterFork(t *testing.T) {
	// A child lives from 2 to 8 s where there is one; faults of the main thread per second with it and without.
	saving := func(child bool, with, without float64) edge {
		e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)
		sum := map[string]float64{}
		for s := range int64(11) {
			if s > 0 {
				sum["main.run_ns"] += 0.2e9
				sum["main.minflt"] += without
				if s > 2 && s <= 8 {
					sum["main.minflt"] += with - without
				}
			}
			for name, v := range sum {
				e.Sample(recording.Sample{
					TimeNs: s * 1e9, Source: recording.SourceHost, Subject: edgeNode, Name: name,
					Value: v,
				})
			}
			v := 0.0
			if child && s >= 2 && s < 8 {
				v = 1
			}
			e.Sample(recording.Sample{
				TimeNs: s*1e9 + 50e6, Source: recording.SourceServer, Subject: edgeNode,
				Name: "rdb_bgsave_in_progress", Value: v,
			})
		}
		for i := range int64(5) {
			e.seen(pathClient, "GET", (i+3)*1000*edgeMs, 5, part{"server", "busy", 20, "BITFIELD from 10.0.0.7:1"},
				part{"server", "exec", 1, ""})
		}
		return e.info(map[string]float64{"current_cow_size": 80e6})
	}
	explainEdge(t, find("cow-faults-after-fork"), []edgeCase{
		{
			name: "writes all over while a child saves", rec: saving(true, 30_000, 100), found: true,
			evidence: "minor faults per second, without a child 100", fix: "BGSAVE",
		},
		{
			name: "its price was measured", rec: saving(true, 30_000,
				100).info(map[string]float64{
				"used_cpu_sys_main_thread": 0.9, "used_cpu_user_main_thread": 0.3,
				"total_reads_processed": 3000, "total_writes_processed": 3000,
			}),
			found: true, evidence: "4.76 µs of kernel time each",
		},
		{name: "pages were read from disk", rec: saving(true, 30_000,
			100).host(map[string]float64{"main.majflt": 5000}), found: true, doubted: true, against: "read from disk"},
		{name: "memory that grows, with a child or without", rec: saving(true, 30_000, 25_000)},
		{name: "faults without a child", rec: saving(false, 30_000, 100)},
		{name: "a child, and few writes", rec: saving(true, 900, 100)},
	})
}
