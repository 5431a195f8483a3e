package cause_test

import (
	"fmt"
	"strings"
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
			"softirq-on-redis-core", "", "60 % of the waits",
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

// TestChildOfTheServer: a child that writes a file ends within seconds, and has its CPUs from its server.
func TestChildOfTheServer(t *testing.T) {
	shared := func(neighbours ...recording.Neighbour) edge {
		e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.1, 0.3).
			level(recording.SourceHost, "main.cpu", 0)
		e.Sample(recording.Sample{
			TimeNs: 1, Source: recording.SourceHost, Subject: recording.SubjectMachine, Name: "cpu.count", Value: 4,
		})
		tapUsed(e.Recording)
		tapLatencies(e.Recording, edgeNode, "client GET", 1e5, 100)
		e.event(recording.SourceHost, recording.KindNeighbours, 1, 0, neighbours)
		by := recording.Task{PID: 9, TID: 9, Comm: "redis-server"}
		for i := range int64(10) {
			at := i * 1000 * edgeMs
			tapWait(e.Recording, edgeNode, recording.KindRunQueue, at, 28*edgeMs, recording.ThreadDetail{By: &by})
			e.seen(pathClient, "GET", at, 5, part{"server", "run-queue", 28, taskName(by)},
				part{"server", "exec", 1, ""})
		}
		return e
	}
	own := recording.Neighbour{PID: 9, Command: "redis-rdb-bgsave", Cores: 0.9, Child: true}
	rewrite := recording.Neighbour{PID: 10, Command: "valkey-aof-rewrite", Cores: 0.5, Child: true}
	stress := recording.Neighbour{PID: 11, Command: "stress", Cores: 0.3}
	others := recording.Neighbour{PID: 12, Command: "redis-rdb-bgsave", Cores: 0.9}
	for _, tt := range []struct {
		name                          string
		rec                           edge
		title, evidence, fix, command string
	}{
		{
			name: "its own child", rec: shared(own), title: "The server's own child that writes the snapshot",
			evidence: "its CPU meanwhile ran its own child that writes the snapshot 100 %",
			fix:      "server: set bgsave_cpulist to 1-3",
		},
		{
			name: "an AOF rewrite, and a stranger", rec: shared(rewrite, stress),
			title:    "The server's own child that rewrites the AOF",
			evidence: "its own child that rewrites the AOF (valkey-aof-rewrite[10]) 0.50 cores, stress[11] 0.30 cores",
			fix:      "server: set aof_rewrite_cpulist to 1-3", command: "taskset -acp 1-3 11",
		},
		{
			name: "less than a stranger", rec: shared(stress, recording.Neighbour{
				PID: 9, Command: "redis-rdb-bgsave", Cores: 0.2, Child: true,
			}), title: "Other processes", fix: "Keep stress[11] off CPU 0", command: "taskset -acp 1-3 11",
		},
		{
			name: "another server's child", rec: shared(others), title: "Other processes",
			fix: "redis-rdb-bgsave[12] is the child of a server, which writes the snapshot: give it other CPUs by " +
				"that server's bgsave_cpulist",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rec.Index()
			d := verdict.Diagnose(tt.rec.Recording, "test")
			if len(d.Findings) == 0 || d.Findings[0].Cause != "server-cpu-contention" {
				t.Fatalf("findings %v", names(d))
			}
			f := d.Findings[0]
			if !strings.HasPrefix(f.Title, tt.title) {
				t.Errorf("title %q, want %q", f.Title, tt.title)
			}
			holds(t, "evidence", texts(f.Evidence), tt.evidence)
			commands := ""
			for _, s := range f.FixSteps {
				commands += s.Command
			}
			if commands != tt.command {
				t.Errorf("commands %q, want %q", commands, tt.command)
			}
			if got := f.FixSteps[0].Sentence(); !strings.HasPrefix(got, tt.fix) {
				t.Errorf("first fix %q, want %q", got, tt.fix)
			}
		})
	}
}
