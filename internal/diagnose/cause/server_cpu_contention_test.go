package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// Other processes use the server's CPU, or the kernel with its softirqs.
func TestServerCPUContentionAndSoftirqs(t *testing.T) {
	// CPU 0, on which the main thread runs, in cores; the main thread is in the run queue as long as it runs. Each
	// of ten slow calls waits for a CPU that another thread had.
	waiting := func(softirq, busy float64, by recording.Task) edge {
		e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.1, 0.3).level(recording.SourceHost, "main.cpu",
			0).host(map[string]float64{"net.InSegs": 10_000, "net.OutSegs": 10_000})
		tapUsed(e.Recording)
		tapLatencies(e.Recording, edgeNode, "client GET", 1e5, 100)
		for name, cores := range map[string]float64{"cpu.0.softirq_ns": softirq, "cpu.0.busy_ns": busy} {
			for s := range int64(11) {
				e.Sample(recording.Sample{
					TimeNs: s * 1e9, Source: recording.SourceHost,
					Subject: recording.SubjectMachine, Name: name, Value: cores * float64(s) * 1e9,
				})
			}
		}
		e.event(recording.SourceHost, recording.KindNeighbours, 1, 0,
			[]recording.Neighbour{{PID: by.PID, Command: by.Comm, Cores: busy - softirq - 0.1 + 0.02}})
		for i := range int64(10) {
			at := i * 1000 * edgeMs
			tapWait(e.Recording, edgeNode, recording.KindRunQueue, at, 28*edgeMs, recording.ThreadDetail{By: &by})
			e.seen(pathClient, "GET", at, 5, part{"server", "run-queue", 28, taskName(by)}, part{
				"server", "exec", 1,
				"",
			})
		}
		return e
	}
	stress, daemon := recording.Task{PID: 9, TID: 9, Comm: "stress"}, recording.Task{
		PID: 14, TID: 14,
		Comm: "ksoftirqd/0",
	}
	for _, tt := range []struct {
		name           string
		rec            edge
		first, because string // because of server-cpu-contention, where it is found
		text           string // of its evidence or against it
	}{
		{
			"another process", waiting(0.02, 0.99, stress), "server-cpu-contention", "",
			"other processes had it for the rest",
		},
		{
			"another process, and softirqs on top of it", waiting(0.3, 0.99, stress), "server-cpu-contention", "",
			"for 30 % of the time (/proc/stat) and 30 % of the waits",
		},
		{"ksoftirqd", waiting(0.7, 0.8, daemon), "softirq-on-redis-core", "", ""},
		{
			"softirqs on top of another process for most of its time", waiting(0.6, 0.99, stress),
			"softirq-on-redis-core",
			"softirq-on-redis-core", "60 % of the waits",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rec.Index()
			d := verdict.Diagnose(tt.rec.Recording, "test")
			if len(d.Findings) == 0 || d.Findings[0].Cause != tt.first {
				t.Fatalf("findings %v, want %s first", names(d), tt.first)
			}
			for _, f := range d.Findings {
				if f.Cause == "server-cpu-contention" {
					if f.Because != tt.because {
						t.Errorf("because %q, want %q", f.Because, tt.because)
					}
					holds(t, "evidence", texts(f.Evidence)+texts(f.Against), tt.text)
				}
			}
		})
	}
}

func taskName(t recording.Task) string { return fmt.Sprintf("%s[%d]", t.Comm, t.PID) }
