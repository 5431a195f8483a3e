package ring_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/recording"
)

// replayRows has a sink take the rows of a recording, again and again, as fast as it flushes a second of them.
func replayRows(b *testing.B, scenario string, sink recording.ProfileSink, flush func() error) {
	rows := rowsOf(corpus.Open(b, scenario))
	b.ResetTimer()
	n, before := 0, cpu(b)
	for b.Loop() {
		for _, r := range rows[:len(rows)-1] {
			r.put(sink)
			if n++; n%500 == 0 { // as many as come in half a second
				if err := flush(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	if err := flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(n), "cpu-ns/row")
	b.ReportMetric(float64(n)/float64(b.N), "rows/op")
}

// cpu is the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRows is what a row takes: in the ring, and in a recording that is written row by row.
func BenchmarkRows(b *testing.B) {
	for _, scenario := range []string{"healthy-mixed", "server-cfs-throttled"} {
		b.Run("ring/"+scenario, func(b *testing.B) {
			r, err := ring.Open(ring.Options{Folder: foldertest.Open(b, b.TempDir()), Each: time.Second})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			replayRows(b, scenario, r, r.Flush)
			s := r.Status()
			b.ReportMetric(float64(s.Bytes)/float64(s.Rows), "bytes/row")
		})
		b.Run("recording/"+scenario, func(b *testing.B) {
			w, err := recording.Create(filepath.Join(b.TempDir(), "r.slowpath"), 0)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			replayRows(b, scenario, w, w.Flush)
		})
		b.Run("at-once/"+scenario, func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "r.slowpath"))
			if err != nil {
				b.Fatal(err)
			}
			w, err := recording.WriteAtOnce(file, file.Name(), 0)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			replayRows(b, scenario, w, func() error { return nil })
		})
	}
}
