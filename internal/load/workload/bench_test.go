package workload

import (
	"syscall"
	"testing"
	"time"

	"slowpath/internal/wire/resp"
)

// hot are the mixes whose requests must be made without allocating.
var hot = []struct {
	name    string
	options Options
}{
	{"get-uniform", Options{Commands: []string{"get"}, Keys: Keys{High: 999_999}}},
	{"get-sequential", Options{Commands: []string{"get"}, Keys: Keys{High: 999_999, Dist: Sequential}}},
	{"get-zipf", Options{Commands: []string{"get"}, Keys: Keys{High: 999_999, Dist: Zipf, Exponent: 0.99}}},
	{"get-gaussian", Options{Commands: []string{"get"}, Keys: Keys{
		High: 999_999, Dist: Gaussian, Centre: 500_000,
		Deviation: 100_000,
	}}},
	{"set-3B", Options{Commands: []string{"set"}, Keys: Keys{High: 999_999}, Sizes: FixedSize(3)}},
	{"set-1KiB", Options{Commands: []string{"set"}, Keys: Keys{High: 999_999}, Sizes: FixedSize(1024)}},
	{"set-100-1000B", Options{Commands: []string{"set"}, Keys: Keys{High: 999_999}, Sizes: Sizes{
		low:  100,
		high: 1000,
	}}},
	{"mget-10", Options{Commands: []string{"mget"}, Keys: Keys{High: 999_999}}},
	{"get-set", Options{
		Commands: []string{"get", "set"}, Ratios: []float64{9, 1}, Keys: Keys{High: 999_999},
		Sizes: FixedSize(100),
	}},
	{"zadd", Options{Commands: []string{"zadd"}, Keys: Keys{High: 999_999}}},
	{"multi", Options{Commands: []string{"multi"}, Keys: Keys{High: 999_999}, Sizes: FixedSize(100)}},
	{"ping", Options{Commands: []string{"ping"}}},
}

func BenchmarkNext(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			s := compiled(b, h.options).Stream(1, 0, 1)
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			cpu := cpuTime(b)
			for b.Loop() {
				buf, _ = s.Next(buf[:0])
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is that of this process so far: beside other loads on the machine it says more than the time that passed.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkCheck(b *testing.B) {
	w := compiled(b, Options{
		Commands: []string{"get", "set"}, Keys: Keys{High: 999_999}, Sizes: FixedSize(1024),
		Verify: true,
	})
	s := w.Stream(1, 0, 1)
	reply := resp.AppendValue(nil, resp.Value{Kind: resp.BulkString, Str: w.values.append(nil, 77, 1024)})
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(Request{Key: 77}, reply); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCopy is what the copy of a value alone costs.
func BenchmarkCopy(b *testing.B) {
	v := newValues(FixedSize(1024), Content{}, 1)
	buf, key := make([]byte, 0, 4096), uint64(0)
	cpu := cpuTime(b)
	for b.Loop() {
		buf = v.append(buf[:0], key, 1024)
		key++
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, h := range hot {
		s := compiled(t, h.options).Stream(1, 0, 1)
		buf := make([]byte, 0, 64<<10)
		if n := testing.AllocsPerRun(1000, func() { buf, _ = s.Next(buf[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations per request", h.name, n)
		}
	}
	w := compiled(t, Options{Commands: []string{"get"}, Sizes: FixedSize(100), Verify: true})
	s, reply := w.Stream(1, 0, 1), resp.AppendValue(nil, resp.Value{Kind: resp.BulkString, Str: w.values.append(nil, 0,
		100)})
	if n := testing.AllocsPerRun(1000, func() { _ = s.Check(Request{}, reply) }); n != 0 {
		t.Errorf("Check: %v allocations", n)
	}
}
