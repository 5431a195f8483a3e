//go:build linux

package sampler

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"slowpath/internal/house/await"

	"slowpath/internal/house/needs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/source/hostfs"
)

// watched is how long each part of the benchmark samples.
const watched = 5 * time.Second

// BenchmarkSample is what samples of a busy Redis cost: ns/other in the kernel while another process than the one that
// is sampled has the CPU, ns/hit while that one has it (both with the clock of BPF's own statistics), and per operation
// in slowpath, to find the callers and their names. percent is all of it for one CPU that the process always has, at 99
// samples per second.
func BenchmarkSample(b *testing.B) {
	needs.Real(b, needs.BPF, needs.RedisServer, needs.RedisCLI, needs.Benchmark)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	pid := burnRedis(b)
	others, _ := sampledFor(b, 1)
	run, s := sampledFor(b, pid)
	n, err := s.Counts()
	if err != nil {
		b.Fatal(err)
	}
	var kept [][]byte
	for {
		s.reader.SetDeadline(time.Unix(0, 1))
		r, err := s.reader.Read()
		if err != nil {
			break
		}
		kept = append(kept, bytes.Clone(r.RawSample))
	}
	if len(kept) == 0 {
		b.Fatal("nothing was seen")
	}
	bytesSeen := 0
	for _, k := range kept {
		bytesSeen += len(k)
	}
	for i := 0; b.Loop(); i++ {
		r, err := parse(kept[i%len(kept)], &s.head)
		if err != nil {
			b.Fatal(err)
		}
		s.symbols.name(r)
	}
	other := float64(others.Runtime) / float64(others.RunCount)
	hit := (float64(run.Runtime) - other*float64(int64(run.RunCount)-n.Seen)) / float64(n.Seen)
	b.ReportMetric(other, "ns/other")
	b.ReportMetric(hit, "ns/hit")
	b.ReportMetric(float64(n.Seen), "hits")
	b.ReportMetric(float64(bytesSeen)/float64(len(kept)), "B/hit")
	b.ReportMetric(100*Rate*(hit+float64(b.Elapsed())/float64(b.N))/1e9, "percent")
}

// sampledFor leaves what is seen of a process in the ring buffer, and gives what the program took.
func sampledFor(b *testing.B, pid int) (*ebpf.ProgramStats, *Sampler) {
	b.Helper()
	s, err := Load(Options{
		FS: hostfs.Root{}, Clock: clock.New(), Take: func(Sample) {}, Blind: func(int, string, string, string) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Start([]Target{{PID: pid}}); err != nil {
		b.Fatal(err)
	}
	await.Pass(watched)
	run, err := s.objects.OnClock.Stats()
	if err != nil || run.RunCount == 0 {
		b.Fatalf("%+v, %v", run, err)
	}
	return run, s
}

func burnRedis(b *testing.B) int {
	b.Helper()
	c := exec.Command("redis-server", "--port", "0", "--unixsocket", b.TempDir()+"/s", "--save", "")
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	load := exec.Command("redis-benchmark", "-s", c.Args[4], "-n", "1000000000", "-q", "-t", "set")
	await.Until(b, "the server answers", func() bool {
		return exec.Command("redis-cli", "-s", c.Args[4], "ping").Run() == nil
	})
	if err := load.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = load.Process.Kill(); _ = load.Wait() })
	return c.Process.Pid
}
