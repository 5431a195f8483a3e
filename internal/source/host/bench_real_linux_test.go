package host

import (
	"context"
	"net"
	"os"
	"path/filepath"
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

// BenchmarkUnixPeers looks for the clients of a server with 1 000 connections over a Unix socket.
func BenchmarkUnixPeers(b *testing.B) {
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	const clients = 1000
	for range clients {
		for _, end := range []func() (net.Conn, error){
			func() (net.Conn, error) { return net.Dial("unix", l.Addr().String()) }, l.Accept,
		} {
			c, err := end()
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
		}
	}
	w := &watch{Options: Options{FS: Root{}, Process: Process{PID: os.Getpid()}}}
	for b.Loop() {
		if found := len(w.peerInodes()); found != clients {
			b.Fatalf("found %d", found)
		}
	}
}
