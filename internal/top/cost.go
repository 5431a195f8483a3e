package top

import (
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/recording/series"
)

// Meter measures what slowpath takes of this host.
type Meter struct {
	mu       sync.Mutex
	now      int64         // nanoseconds since the epoch, of the last frame
	cpu      time.Duration // of this process, then
	screens  spent
	verdicts spent
}

// Screen counts time that frames and screens took.
func (m *Meter) Screen(d time.Duration) { m.count(&m.screens, d) }

// Verdict counts CPU time that judging took.
func (m *Meter) Verdict(d time.Duration) { m.count(&m.verdicts, d) }

func (m *Meter) count(s *spent, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.current += d
}

// Cost is the cost since the call before, which is a second ago.
func (m *Meter) Cost(v *live.View, now int64) Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	cpu := processCPU()
	m.screens.next(now)
	m.verdicts.next(now)
	c := Cost{
		Screen: m.screens.share(), Verdicts: m.verdicts.share(), Kernel: kernelShare(v), Bytes: memory(),
	}
	if m.now > 0 && now > m.now {
		c.Process = float64(cpu-m.cpu) / float64(now-m.now)
	}
	m.now, m.cpu = now, cpu
	return c
}

// spent is time that was spent in the last minute, by frames.
type spent struct {
	current time.Duration
	each    []time.Duration
	ends    []int64 // nanoseconds since the epoch
}

func (s *spent) next(now int64) {
	s.each, s.ends = append(s.each, s.current), append(s.ends, now)
	s.current = 0
	for len(s.ends) > 1 && s.ends[0] < now-minute*1e9 {
		s.each, s.ends = s.each[1:], s.ends[1:]
	}
}

// share is the part of the time; the first frame only begins it.
func (s *spent) share() float64 {
	if len(s.ends) < 2 {
		return 0
	}
	all := time.Duration(0)
	for _, d := range s.each[1:] {
		all += d
	}
	return float64(all) / float64(s.ends[len(s.ends)-1]-s.ends[0])
}

// processCPU is the CPU time of this process (getrusage).
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// kernelShare is what the kernel programs take, as a part of a core; -1 where the kernel does not measure it.
func kernelShare(v *live.View) float64 {
	ns, _, ok := v.LastSample(series.TapHookTime, "")
	of, _, measured := v.LastSample(series.TapHookMeasured, "")
	if !ok || !measured || of <= 0 {
		return -1
	}
	return ns / of
}

// memory is what the Go runtime has taken of the system and not given back, in bytes.
func memory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
