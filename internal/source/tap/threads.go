//go:build linux

package tap

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// span is a stretch of time, [from, to).
type span struct{ from, to int64 }

func (s span) overlap(from, to int64) int64 { return max(0, min(s.to, to)-max(s.from, from)) }

// interval is an activity of a thread, or a wait.
type interval struct {
	span
	culprit string
	conn    uint64 // of an activity: the connection served
	slept   int64  // of an activity: nanoseconds asleep, inside of a command such as DEBUG SLEEP
	state   string // of a wait
}

// threadLog has the last long activities and long waits of a thread. Both are few, and end before the calls that waited
// for them.
type threadLog struct {
	activities, waits []interval
	functions         []interval // functions of the server, within activities
}

const maxIntervals = 512

func (r *recorder) threadLog(tid uint32) *threadLog {
	l := r.threads[tid]
	if l == nil {
		l = &threadLog{}
		r.threads[tid] = l
	}
	return l
}

func appendBounded(list []interval, d interval) []interval {
	if len(list) >= 2*maxIntervals {
		list = append(list[:0], list[len(list)-maxIntervals:]...)
	}
	return append(list, d)
}

// longest finds the interval that took most of [from, to), of those that match.
func longest(list []interval, from, to int64, match func(interval) bool) (interval, int64) {
	var best interval
	var most int64
	for i := len(list) - 1; i >= 0 && list[i].to > from-int64(60e9); i-- {
		if n := list[i].overlap(from, to); n > most && match(list[i]) {
			best, most = list[i], n
		}
	}
	return best, most
}

func anyInterval(interval) bool { return true }

// last is when the last interval of a thread ended.
func (l *threadLog) last() (ns int64) {
	for _, list := range [][]interval{l.activities, l.waits, l.functions} {
		if n := len(list); n > 0 {
			ns = max(ns, list[n-1].to)
		}
	}
	return ns
}

// sleptWorking is how many nanoseconds of [from, to) the thread slept within an activity, and not since it had none.
func (l *threadLog) sleptWorking(from, to int64) int64 {
	var ns int64
	for _, d := range l.activities {
		ns += min(d.slept, d.overlap(from, to))
	}
	return ns
}

// name says what an activity was: the loop's own work by the server's function that took most of it, where its name is
// known.
func (l *threadLog) name(d interval, from, to int64) string {
	if d.conn != 0 || d.culprit == "" {
		return d.culprit
	}
	if f, ns := longest(l.functions, max(from, d.from), min(to, d.to), anyInterval); ns > 0 {
		return f.culprit
	}
	return d.culprit
}

// activity records what a serving thread did between two socket events.
func (r *recorder) activity(e *kernelActivityEvent) {
	a := e.Activity
	n, ok := r.serving[e.Tgid]
	if !ok || !r.records(roleServer) {
		return
	}
	client := clientEnd{addrPort(a.Raddr, a.Rport), a.Net}
	if a.Others > 0 {
		r.othersServed(e)
		return
	}
	d := recording.ActivityDetail{
		Calls: int(a.Calls), Args: int(a.Args), Bytes: int64(a.Bytes), Sends: a.Sends != 0,
		TID: int(e.Tid),
	}
	if a.Calls > 0 {
		d.Op = opName(a.Name, a.Sub)
	}
	if a.Conn != 0 {
		d.Client, d.Process = client.String(), r.clients[client].String()
	}
	from, to := r.time(a.From), r.time(a.To)
	off := int64(0)
	for i := range a.ClkTo.Ns {
		off += int64(a.ClkTo.Ns[i] - a.ClkFrom.Ns[i])
	}
	d.OnCPUNs = max(to-from-off, 0)
	what := culprit(d.Op, d.Client, d.Process)
	if d.Sends {
		what = "sending a reply to " + d.Client
	}
	l := r.threadLog(e.Tid)
	l.activities = appendBounded(l.activities, interval{
		span: span{from, to}, culprit: what, conn: a.Conn,
		slept: int64(a.ClkTo.Ns[asleep] - a.ClkFrom.Ns[asleep]),
	})
	if f, ns := longest(l.functions, from, to, anyInterval); ns > 0 {
		d.Internal = f.culprit
	}
	r.Sink.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: n.Address,
		Kind: recording.KindActivity, Detail: recording.Detail(d),
	})
}

// notFollowed is a culprit that is not known, since it may have been a connection that is left out.
const notFollowed = "calls on connections that were not followed"

// othersServed notes that a thread served connections that are left out.
func (r *recorder) othersServed(e *kernelActivityEvent) {
	from, to := r.time(e.Activity.From), r.time(e.Activity.To)
	l := r.threadLog(e.Tid)
	l.activities = appendBounded(l.activities, interval{
		span: span{from, to}, culprit: notFollowed,
	})
	if to-from >= int64(r.Slow) && to-from >= int64(r.MinWork)*int64(e.Activity.Others) {
		r.sample.widen(to) // one of them took long
	}
}

var waitKinds = [clocks]string{
	runnable: recording.KindRunQueue, throttled: recording.KindThrottled,
	frozen: recording.KindFrozen, blocked: recording.KindBlocked,
}

// ongoing records the waits that have not ended when the watch does: the programs report a wait at its end. A thread
// that is merely asleep does not wait.
func (t *Tap) ongoing() {
	now := uint64(t.Clock.Now() - t.offset)
	t.counts.eachThread(func(th *kernelThread) {
		if th.State < uint32(asleep) && now > th.Since && now-th.Since >= uint64(t.MinWork) {
			t.recorder.offCPU(&kernelOffcpuEvent{
				State: kernelThreadState(th.State), Tid: th.Tid, Tgid: th.Tgid, Syscall: th.Syscall,
				Arg: th.Arg, From: th.Since, To: now,
			})
		}
	})
}

// offCPU records a wait of a thread.
func (r *recorder) offCPU(e *kernelOffcpuEvent) {
	if e.State == asleep {
		r.elsewhere(e)
	}
	if e.State >= asleep {
		return
	}
	n, serves := r.serving[e.Tgid]
	if r.Side != "" && serves != r.records(roleServer) {
		return
	}
	d, what := r.threadDetail(e, serves)
	subject := recording.ProcessPrefix + itoa(int(e.Tgid))
	if serves {
		subject = n.Address
	}
	kind := waitKinds[e.State]
	l := r.threadLog(e.Tid)
	l.waits = appendBounded(l.waits, interval{span: span{r.time(e.From), r.time(e.To)}, culprit: what, state: kind})
	if !serves && e.State == runnable && !r.waitLimit.admits(r.time(e.From), int64(e.To-e.From)) {
		return
	}
	r.Sink.Event(recording.Event{
		TimeNs: r.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap,
		Subject: subject, Kind: kind,
		Detail: recording.Detail(d),
	})
}

// threadDetail is what is known of a wait, and what the thread waited for.
func (r *recorder) threadDetail(e *kernelOffcpuEvent, serves bool) (d recording.ThreadDetail, culprit string) {
	d = recording.ThreadDetail{TID: int(e.Tid), Share: 1, Comm: comm(e.Comm)}
	switch e.State {
	case runnable:
		if e.ByTid == 0 && e.ByComm[0] == 0 {
			break // it still waits
		}
		d.By = &recording.Task{PID: int(e.ByTgid), TID: int(e.ByTid), Comm: comm(e.ByComm)}
		culprit = process{pid: d.By.PID, comm: d.By.Comm}.String()
		switch {
		case e.ByOutside != 0:
			culprit = d.By.Comm + " of another PID namespace"
		case d.By.PID == 0:
			culprit = "the idle task (the CPU was late to wake up)"
		}
	case throttled:
		if r.Quota != nil {
			d.Cgroup, d.Cores = r.Quota(int(e.Tid))
			culprit = d.Holder()
		}
	case blocked:
		d.Syscall = syscallName(int(e.Syscall))
		if serves && hostfs.TakesDescriptor(d.Syscall) {
			open := r.openFile(e.File, int(e.Arg))
			d.File, d.Device, d.Other = open.File, open.Device, open.Other
		}
		if d.Other != "" && e.ByTid != 0 && e.ByTgid != e.Tgid {
			d.By = &recording.Task{PID: int(e.ByTgid), TID: int(e.ByTid), Comm: comm(e.ByComm)}
		}
		culprit = d.Call()
	}
	return d, culprit
}

// openFile is what a thread has open under the number that it gave its system call.
func (r *recorder) openFile(f kernelOpenFile, number int) hostfs.Descriptor {
	mode := os.FileMode(f.Mode & 0o777)
	switch f.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFIFO:
		mode |= os.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= os.ModeSocket
	case unix.S_IFCHR:
		mode |= os.ModeDevice | os.ModeCharDevice
	default:
		return hostfs.Descriptor{}
	}
	name, _, _ := strings.Cut(string(f.Name[:]), "\x00")
	return hostfs.NewDescriptor(number, mode, name, func() string {
		return hostfs.BlockDevice(r.Files, unix.Mkdev(f.Device>>20, f.Device&(1<<20-1)))
	})
}
