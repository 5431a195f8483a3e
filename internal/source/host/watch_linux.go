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

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// ErrGone means that the watched process ended.
var ErrGone = errors.New("the watched process has ended")

// Watch writes what the host's files say about a process to the sink until the context ends. What may not be read
// becomes a blind spot. It fails only when the process cannot be watched at all; when the process ends, it answers
// ErrGone.
func Watch(ctx context.Context, o Options) error {
	o = o.withDefaults()
	w := &watch{
		Options: o, seen: map[string]bool{}, last: map[string]float64{},
		peers: map[netip.AddrPort]netip.AddrPort{}, cpuOf: map[int]processCPU{}, callers: map[int]caller{},
	}
	groups, err := resolveCgroups(o.FS, o.Process.PID)
	if err != nil {
		w.blind("cgroups of the server", err.Error(), "mount /proc and /sys/fs/cgroup of the host")
	}
	thread, err := openThread(o.FS, o.Process.PID, o.Process.PID, groups)
	if err != nil {
		return err
	}
	defer thread.Close()
	w.thread, w.groups = thread, groups
	w.checkSight()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	both.Go(func() {
		if err := w.fine(ctx); err != nil {
			cancel(err)
		}
	})
	both.Go(func() { w.coarse(ctx) })
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
	thread *threadReader
	groups cgroups

	mu   sync.Mutex
	seen map[string]bool // blind spots that were told
	last map[string]float64

	// What follows belongs to the coarse part.
	neighbours, sockets, listen, clients, smaps, fds, settings paced

	table     SocketTable                       // nil when the server has no port or its namespace is closed to us
	callers   map[int]caller                    // neighbours by pid
	peers     map[netip.AddrPort]netip.AddrPort // the server's connections: remote to local
	local     []*client
	rtts      []int64
	unread    []netip.AddrPort // other ends of connections with bytes that the server has not read
	waiters   []recording.Unread
	mainRunNs int64
	stands    bool   // the main thread has not run since the look before
	allowed   cpuSet // CPUs of the main thread
	mainCPU   int
	cpuCount  int
	rssBytes  int64
	smapsNs   int64 // cost of the last look at smaps_rollup
	thp       string
	cpuOf     map[int]processCPU
	lastScan  int64
	scanRound int
	scratch   [4096]byte

	reads atomic.Int64 // files read by the coarse part
	cpuNs atomic.Int64 // CPU time of the looks of this source
}

// sample writes a value when it changed since it was last written.
func (w *watch) sample(subject, name string, value float64) {
	key := subject + "\x00" + name
	if last, ok := w.last[key]; ok && last == value {
		return
	}
	w.last[key] = value
	w.Sink.Sample(recording.Sample{
		TimeNs: w.Clock.Now(), Source: recording.SourceHost, Subject: subject, Name: name,
		Value: value,
	})
}

// blind tells once what cannot be seen.
func (w *watch) blind(what, why, enable string) {
	w.mu.Lock()
	told := w.seen[what]
	w.seen[what] = true
	w.mu.Unlock()
	if told {
		return
	}
	w.Sink.Event(recording.Event{
		TimeNs: w.Clock.Now(), Source: recording.SourceHost, Subject: w.Node,
		Kind:   recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

// checkSight tells from the start what the fine part will not see.
func (w *watch) checkSight() {
	if !w.groups.cpu.known() {
		w.blind("CPU quota of the server", "its cgroup is not mounted here", "run slowpath on the host, or in a "+
			"container with the host's cgroup namespace and /sys/fs/cgroup")
	}
	if w.thread.syscall == nil {
		w.blind("system call in which the server is blocked", fmt.Sprintf("/proc/%d/syscall may not be read",
			w.Process.PID), "run as root or with CAP_SYS_PTRACE")
	}
}

// graceTime is how long a wait that is open at the end of the watch is followed: a CPU quota is renewed after 100 ms by
// default.
const graceTime = 120 * time.Millisecond

// fine looks at the main thread at an absolute schedule until the context ends.
func (w *watch) fine(ctx context.Context) error {
	s := newStates(w.Process.PID, int64(w.FineEvery), func(x stretch) {
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
	next := time.Now()
	var t tick
	after := 0 // ticks since the context ended
	for {
		if ctx.Err() != nil && (!s.waiting() || after >= int(graceTime/w.FineEvery)) {
			return nil
		}
		if ctx.Err() != nil {
			after++
		}
		if !w.look(s, &t) {
			return ErrGone
		}
		next = next.Add(w.FineEvery)
		if late := time.Since(next); late > 0 {
			next = next.Add(late) // the tick that was missed is in the next one, with its real length
		}
		alarm.Sleep(time.Until(next))
	}
}

// look reads one tick and adds it, on one thread, so that its CPU time can be told. What the Go runtime and the kernel
// use to wake us comes on top of it: in a virtual machine that is the larger part.
func (w *watch) look(s *states, t *tick) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.bookCPU(threadCPU())
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
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

func (w *watch) bookCPU(begin int64) { w.cpuNs.Add(threadCPU() - begin) }

// emitCost says what the looks of this source cost, without the wake-ups.
func (w *watch) emitCost() {
	now := w.Clock.Now()
	for name, v := range map[string]int64{"host.cpu_ns": w.cpuNs.Load(), "host.reads": w.reads.Load() +
		w.thread.reads.Load()} {
		w.Sink.Sample(recording.Sample{
			TimeNs: now, Source: recording.SourceHost, Subject: recording.SubjectSelf,
			Name: name, Value: float64(v),
		})
	}
}

func denied(err error) bool { return errors.Is(err, os.ErrPermission) }
