package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"
)

// Watch writes what the host's files say about a process to the sink until the context ends. What may not be read
// becomes a blind spot. It fails only when the process cannot be watched at all; when the process ends, it answers
// ErrGone.
func Watch(ctx context.Context, o Options) error {
	o = o.withDefaults()
	w := &watch{
		Options: o, reported: map[string]bool{}, last: map[string]float64{},
		peers: map[netip.AddrPort]netip.AddrPort{}, cpuOf: map[int]processCPU{}, callers: map[int]caller{},
		sizes: segmentSizes{from: recording.Server},
	}
	groups, err := resolveCgroups(o.FS, o.Process.PID)
	if err != nil {
		w.blind("cgroups of the server", err.Error(), "mount /proc and /sys/fs/cgroup of the host")
	}
	w.loopTID = LoopThread(o.FS, o.Process.PID)
	thread, err := openThread(o.FS, o.Process.PID, w.loopTID, groups)
	if err != nil {
		return err
	}
	defer thread.Close()
	w.thread, w.groups = thread, groups
	w.reportLimits()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	both.Go(func() {
		if err := w.watchThread(ctx); err != nil {
			cancel(err)
		}
	})
	both.Go(func() { w.watchCounters(ctx) })
	both.Wait()
	w.emitCost()
	if err := context.Cause(ctx); errors.Is(err, ErrGone) {
		return fmt.Errorf("process %d: %w", o.Process.PID, ErrGone)
	}
	return nil
}

// watch is the state of one Watch.
type watch struct {
	Options
	loopTID int // thread that is watched as the main thread
	thread  *threadReader
	groups  cgroups

	mu       sync.Mutex
	reported map[string]bool // blind spots that were reported
	last     map[string]float64

	// What follows belongs to the goroutine that reads the counters.
	neighbours, sockets, listen, clients, eachClient, smaps, fds, settings paced

	tables    []SocketTable                     // of the server's network namespace and of slowpath's own
	table     SocketTable                       // nil when the server has no port or its namespace is closed to us
	callers   map[int]caller                    // neighbours by pid
	peers     map[netip.AddrPort]netip.AddrPort // the server's connections: remote to local
	local     []*client
	ends      map[string]connOwner   // clients by their addresses, as the recording has them; nil: none yet
	noUnix    bool                   // the server listens at no Unix socket
	programs  map[int]hostfs.Program // what these run
	rtts      []int64
	sizes     segmentSizes
	unread    []netip.AddrPort // other ends of connections with bytes that the server has not read
	waiters   []recording.Unread
	mainRunNs int64
	stalled   bool   // the main thread has not run since the round before
	allowed   cpuSet // CPUs of the main thread
	mainCPU   int
	cpuCount  int
	rssBytes  int64
	smapsNs   int64 // how long smaps_rollup took to read
	thp       string
	cpuOf     map[int]processCPU
	lastScan  int64
	scanRound int
	scratch   [4096]byte

	reads atomic.Int64 // files read for the counters
	cpuNs atomic.Int64 // CPU time of reading
	late  atomic.Int64 // by how much readings of the main thread came late that missed the next one, in nanoseconds
}

// sample writes a value about the server or the machine.
func (w *watch) sample(of series.Name, value float64) { w.sampleOf(of, w.Node, value) }

// sampleOf writes a value when it changed since it was last written.
func (w *watch) sampleOf(of series.Name, which string, value float64) {
	subject := of.About(which)
	key := subject + "\x00" + of.Name
	if last, ok := w.last[key]; ok && last == value {
		return
	}
	w.last[key] = value
	w.Sink.Sample(recording.Sample{
		TimeNs: w.Clock.Now(), Source: of.Source, Subject: subject, Name: of.Name, Value: value,
	})
}

// sampled reports whether a series about the server was written before.
func (w *watch) sampled(of series.Name) bool {
	_, ok := w.last[of.About(w.Node)+"\x00"+of.Name]
	return ok
}

// blind reports once what cannot be seen.
func (w *watch) blind(what, why, enable string) {
	w.mu.Lock()
	before := w.reported[what]
	w.reported[what] = true
	w.mu.Unlock()
	if before {
		return
	}
	w.Sink.Event(recording.Event{
		TimeNs: w.Clock.Now(), Source: recording.SourceHost, Subject: w.Node,
		Kind:   recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

// reportLimits reports at the start what will not be seen of the main thread.
func (w *watch) reportLimits() {
	if !w.groups.cpu.known() {
		w.blind("CPU quota of the server", "its cgroup is not mounted here", "run slowpath on the host, or in a "+
			"container with the host's cgroup namespace and /sys/fs/cgroup")
	}
	if w.thread.syscall == nil {
		w.blind("system call in which the server is blocked", fmt.Sprintf("/proc/%d/syscall may not be read",
			w.Process.PID), "run as root or with CAP_SYS_PTRACE")
	}
}

// graceTime is for how long a wait that is open at the end of the watch is followed: a CPU quota is renewed every 100
// ms by default.
const graceTime = 120 * time.Millisecond

// watchThread reads the main thread at an absolute schedule until the context ends.
func (w *watch) watchThread(ctx context.Context) error {
	s := newStates(w.loopTID, int64(w.ThreadEvery), func(x stateSpan) {
		w.Sink.Event(recording.Event{
			TimeNs: x.from, DurationNs: x.to - x.from, Source: recording.SourceHost,
			Subject: w.Node,
			Kind:    x.kind, Detail: recording.Detail(x.detail),
		})
	})
	defer s.flush()
	alarm, err := clock.NewAlarm(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer alarm.Close()
	next := w.Clock.Now()
	var t reading
	after := 0 // readings since the context ended
	for {
		if ctx.Err() != nil && (!s.waiting() || after > int(graceTime/w.ThreadEvery)) {
			return nil
		}
		if ctx.Err() != nil {
			after++
		}
		if !w.readThread(s, &t) {
			return ErrGone
		}
		next += int64(w.ThreadEvery) * w.Pace.Times()
		if late := w.Clock.Now() - next; late > 0 { // a reading that is late makes its step longer
			w.late.Add(late)
			next += late
		}
		alarm.Sleep(time.Duration(next - w.Clock.Now()))
	}
}

// readThread makes one reading and adds it, on one thread of this process, so that its CPU time can be measured. What
// the Go runtime and the kernel use to wake it comes on top: in a virtual machine that is the larger part.
func (w *watch) readThread(s *states, t *reading) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.addCPU(threadCPU())
	if !w.thread.read(t) || t.state == 'Z' || t.state == 'X' {
		return false
	}
	t.at = w.Clock.Now()
	s.add(*t)
	return true
}

// threadCPU is the CPU time of the calling thread.
func threadCPU() int64 {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID,
		uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return ts.Nano()
}

func (w *watch) addCPU(begin int64) { w.cpuNs.Add(threadCPU() - begin) }

// emitCost records what reading cost, without the wake-ups.
func (w *watch) emitCost() {
	now := w.Clock.Now()
	for of, v := range map[series.Name]int64{
		series.HostCPU: w.cpuNs.Load(), series.HostReads: w.reads.Load() + w.thread.reads.Load(),
		series.HostLate: w.late.Load(),
	} {
		w.Sink.Sample(recording.Sample{
			TimeNs: now, Source: of.Source, Subject: of.Subject, Name: of.Name, Value: float64(v),
		})
	}
}

func denied(err error) bool { return errors.Is(err, os.ErrPermission) }
