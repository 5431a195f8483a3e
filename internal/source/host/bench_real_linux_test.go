package host

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// BenchmarkReadThread is the cost of one reading of a main thread in a cgroup without a quota, state machine included.
func BenchmarkReadThread(b *testing.B) {
	groups, err := resolveCgroups(Root{}, os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	r, err := openThread(Root{}, os.Getpid(), os.Getpid(), groups)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	s := newStates(os.Getpid(), 5e6, func(stateSpan) {})
	var t reading
	b.ReportAllocs()
	for i := range b.N {
		if !r.read(&t) {
			b.Fatal("the thread is gone")
		}
		t.at = int64(i+1) * 5e6
		s.add(t)
	}
}

// BenchmarkWatch runs a whole watch of this process for a second per operation and says what it costs the host.
func BenchmarkWatch(b *testing.B) {
	before := cpuOfProcess()
	begin := time.Now()
	for range b.N {
		sink := &memory{}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := Watch(ctx, Options{Sink: sink, Node: node, Process: Process{PID: os.Getppid()}})
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		v, _ := sink.value(recording.SubjectSelf, "host.reads")
		b.ReportMetric(v, "reads/op")
	}
	b.ReportMetric(100*float64(cpuOfProcess()-before)/float64(time.Since(begin)), "%cpu")
}

func cpuOfProcess() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
