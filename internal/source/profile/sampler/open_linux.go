package sampler

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Sampler is the BPF program that is attached to the clocks of all CPUs.
type Sampler struct {
	Options
	objects clockObjects
	reader  *ringbuf.Reader
	clocks  []int // file descriptors of perf
	symbols *symbols
	head    clockSample // all but the stack of the sample that is being read
}

// Bounds of the ring buffer, in bytes. A sample has 26 KiB at most, most have about 5.
const (
	ringPerCPU = 512 << 10
	minRing    = 1 << 20
	maxRing    = 16 << 20
)

// Load loads the program. Its errors match ErrPrivilege or ErrKernel.
func Load(o Options) (s *Sampler, err error) {
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("raising the limit of locked memory: %w", err)
	}
	spec, err := loadClock()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded program: %w", err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("counting CPUs: %w", err)
	}
	spec.Maps["samples"].MaxEntries = uint32(cpus)
	spec.Maps["events"].MaxEntries = uint32(1) << bits.Len(uint(min(max(cpus*ringPerCPU, minRing), maxRing)-1))
	s = &Sampler{Options: o}
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	if err := spec.LoadAndAssign(&s.objects, nil); err != nil {
		return s, refusal("loading the program", err)
	}
	if s.reader, err = ringbuf.NewReader(s.objects.Events); err != nil {
		return s, fmt.Errorf("opening the ring buffer: %w", err)
	}
	s.symbols, err = openSymbols(runtime.GOARCH, o)
	return s, err
}

// Start names the processes to the program, and starts the clocks. Its errors are those of Load.
func (s *Sampler) Start(targets []Target) error {
	for _, t := range targets {
		if err := s.Follow(t); err != nil {
			return err
		}
		s.symbols.process(t.PID)
	}
	return s.start(rateFor(targets))
}

// Follow samples one more process, also while Run passes samples on.
func (s *Sampler) Follow(t Target) error {
	s.symbols.quiet.Store(t.PID, t.TID != 0)
	if err := s.objects.Targets.Put(uint32(t.PID), uint32(t.TID)); err != nil {
		return fmt.Errorf("naming process %d to the kernel: %w", t.PID, err)
	}
	return nil
}

// Forget ends to sample a process. It must not be called while Run runs.
func (s *Sampler) Forget(pid int) {
	_ = s.objects.Targets.Delete(uint32(pid)) // it is there, unless Follow failed
	delete(s.symbols.processes, pid)
	s.symbols.quiet.Delete(pid)
}

func refusal(what string, err error) error {
	why := ErrKernel
	if errors.Is(err, os.ErrPermission) {
		why = ErrPrivilege
	}
	return fmt.Errorf("%w: %s: %w", why, what, err)
}

// start opens a clock on each CPU that is online.
func (s *Sampler) start(rate uint64) error {
	s.symbols.period = time.Second / time.Duration(rate)
	online, err := s.FS.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return fmt.Errorf("reading the list of online CPUs: %w", err)
	}
	cpus, err := parseCPUs(string(online))
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: rate,
			Bits: unix.PerfBitFreq | unix.PerfBitDisabled,
		}
		attr.Size = uint32(unix.PERF_ATTR_SIZE_VER5)
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return refusal(fmt.Sprintf("opening the clock of CPU %d", cpu), err)
		}
		s.clocks = append(s.clocks, fd)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, s.objects.OnClock.FD()); err != nil {
			return refusal(fmt.Sprintf("attaching to the clock of CPU %d", cpu), err)
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return refusal(fmt.Sprintf("starting the clock of CPU %d", cpu), err)
		}
	}
	return nil
}

// parseCPUs reads "0-3,8".
func parseCPUs(text string) (out []int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to > 1<<16 {
			return nil, fmt.Errorf("reading the list of online CPUs: %.40q is not one", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			out = append(out, cpu)
		}
	}
	return out, nil
}

// Counts reads the counters of the BPF program.
func (s *Sampler) Counts() (c Counts, err error) {
	for which, to := range map[clockCounter]*int64{
		clockCounterC_SEEN: &c.Seen, clockCounterC_LOST: &c.Lost, clockCounterC_BARE: &c.Bare,
	} {
		var perCPU []uint64
		if err := s.objects.Counters.Lookup(uint32(which), &perCPU); err != nil {
			return c, fmt.Errorf("reading the counters of the sampler: %w", err)
		}
		for _, n := range perCPU {
			*to += int64(n)
		}
	}
	return c, nil
}

// Close stops the clocks.
func (s *Sampler) Close() error {
	var errs []error
	for _, fd := range s.clocks {
		errs = append(errs, unix.Close(fd))
	}
	s.clocks = nil
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.symbols != nil {
		s.symbols.close()
	}
	if s.objects.OnClock != nil {
		errs = append(errs, s.objects.Close())
	}
	return errors.Join(errs...)
}
