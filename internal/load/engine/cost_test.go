//go:build linux

package engine

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/load/workload"
)

// BenchmarkCall is what a call costs beside its system calls: its reply scanned and counted, and the next request made.
// It must not allocate.
func BenchmarkCall(b *testing.B) {
	for _, reply := range []struct {
		name string
		text []byte
	}{
		{"null", []byte("$-1\r\n")},
		{"3B", []byte("$3\r\nabc\r\n")},
		{"1KiB", append(append([]byte("$1024\r\n"), make([]byte, 1024)...), '\r', '\n')},
	} {
		for _, pipeline := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/pipeline=%d", reply.name, pipeline), func(b *testing.B) {
				w, c := benchWorker(b, pipeline)
				replies := bytes.Repeat(reply.text, pipeline)
				b.ReportAllocs()
				for n := 0; n < b.N; n += pipeline {
					w.now = w.r.Clock.Now()
					if err := w.replies(c, replies); err != nil {
						b.Fatal(err)
					}
					c.out = c.out[:0]
				}
			})
		}
	}
}

// BenchmarkWake is how late a thread wakes up that sleeps as a worker does, 20 µs at a time, which is a schedule of 50
// 000 calls per second: what this machine leaves of the schedule to a load that does not spin.
func BenchmarkWake(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var p poller
	if err := p.open(); err != nil {
		b.Fatal(err)
	}
	defer p.close()
	late := NewHistogram()
	begin := time.Now()
	for due := 20 * time.Microsecond; b.Loop(); due += 20 * time.Microsecond {
		now := time.Since(begin)
		for ; now < due; now = time.Since(begin) {
			if _, err := p.wait(due - now); err != nil {
				b.Fatal(err)
			}
		}
		_ = late.RecordValue(int64(now - due)) // in range
	}
	b.ReportMetric(float64(late.ValueAtQuantile(50)), "ns-p50")
	b.ReportMetric(float64(late.ValueAtQuantile(99)), "ns-p99")
}

func benchWorker(b *testing.B, pipeline int) (*worker, *conn) {
	load, err := workload.Compile(workload.Options{
		Commands: []string{"get"}, Keys: workload.Keys{High: 999_999},
		Sizes: workload.FixedSize(3),
	})
	if err != nil {
		b.Fatal(err)
	}
	slow := new(atomic.Int64)
	slow.Store(math.MaxInt64)
	w, err := newWorker(&run{Options: Options{
		Workload: load, Clock: clock.New(), Pipeline: pipeline, Threads: 1,
		ReadFrom: Master, SlowFrom: slow,
	}}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.close)
	w.tally = NewTally(len(load.Ops), false)
	c := newConn(-1, pipeline)
	c.quota = w.r.quota()
	c.dead = true // nothing is written
	for range pipeline {
		w.connReady(c)
	}
	return w, c
}
