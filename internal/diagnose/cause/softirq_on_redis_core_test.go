package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestSoftirqOnRedisCore(t *testing.T) {
	// The use of CPU 0 of two: softirqs, and all together; in cores.
	cpu := func(e edge, softirq, busy float64, segments float64) edge {
		for name, cores := range map[string]float64{
			"cpu.0.softirq_ns": softirq, "cpu.softirq_ns": softirq * 1.05,
			"cpu.0.busy_ns": busy,
		} {
			for s := range int64(11) {
				e.Sample(recording.Sample{
					TimeNs: s * 1e9, Source: recording.SourceHost,
					Subject: recording.SubjectMachine, Name: name, Value: cores * float64(s) * 1e9,
				})
			}
		}
		e.Sample(recording.Sample{
			Source: recording.SourceHost, Subject: recording.SubjectMachine, Name: "cpu.count",
			Value: 2,
		})
		return e.level(recording.SourceHost, "main.cpu", 0).host(map[string]float64{
			"net.InSegs":  segments,
			"net.OutSegs": segments,
		})
	}
	calls := func(by string) edge {
		e := newPath()
		for i := range int64(10) {
			e.seen(pathClient, "GET", i*1000*edgeMs, 5, part{"server", "run-queue", 8, by}, part{
				"server", "exec", 1,
				"",
			})
		}
		return e
	}
	explainEdge(t, find("softirq-on-redis-core"), []edgeCase{
		{
			name: "ksoftirqd has the CPU", rec: cpu(calls("ksoftirqd/0[14]"), 0.5, 0.7, 10_000), found: true,
			evidence: "50 % of the time in softirqs", fix: "smp_affinity_list",
		},
		{
			name: "the server's process is known", rec: cpu(calls("ksoftirqd/0[14]"), 0.5, 0.7, 10_000).
				snapshot(recording.SourceHost, "process", map[string]int{"pid": 4242}).
				level(recording.SourceHost, "cpus_allowed", 1), found: true, fix: "taskset -acp 1 4242",
		},
		{name: "the CPU comes out of idle late", rec: cpu(calls("the idle task (the CPU was late to wake up)"), 0.5,
			0.7, 10_000), found: true, evidence: "the other 1 CPUs"},
		{
			name: "others have it as well", rec: cpu(calls(""), 0.25, 0.99, 10_000), found: true, doubted: true,
			against: "other processes",
		},
		{name: "others have it", rec: cpu(calls("stress[9]"), 0.05, 0.99, 10_000)},
		{name: "its own packets", rec: cpu(calls(""), 0.4, 0.9, 900_000)},
		{name: "nothing is slow", rec: cpu(newPath(), 0.5, 0.7, 10_000)},
	})
}
