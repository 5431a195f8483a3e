//go:build linux

package tap

import "slowpath/internal/recording"

// span is a stretch of time, [from, to).
type span struct{ from, to int64 }

func (s span) overlap(from, to int64) int64 { return max(0, min(s.to, to)-max(s.from, from)) }

// deed is something that a thread did or that was done to it.
type deed struct {
	span
	culprit string
	conn    uint64 // of an item: the connection served
	slept   int64  // of an item: nanoseconds asleep, inside of a command such as DEBUG SLEEP
	state   string // of a wait
}

// history is what a thread did lately: its long items and its long waits. Both are few, and end before the calls that
// waited for them.
type history struct {
	items, waits []deed
	inner        []deed // functions of the server, inside of items
}

const remembered = 512

func (b *book) history(tid uint32) *history {
	h := b.threads[tid]
	if h == nil {
		h = &history{}
		b.threads[tid] = h
	}
	return h
}

func remember(list []deed, d deed) []deed {
	if len(list) >= 2*remembered {
		list = append(list[:0], list[len(list)-remembered:]...)
	}
	return append(list, d)
}

// longest finds what took most of [from, to); others than conn itself.
func longest(list []deed, from, to int64, match func(deed) bool) (deed, int64) {
	var best deed
	var most int64
	for i := len(list) - 1; i >= 0 && list[i].to > from-int64(60e9); i-- {
		if n := list[i].overlap(from, to); n > most && match(list[i]) {
			best, most = list[i], n
		}
	}
	return best, most
}

// sleptWorking is how many nanoseconds of [from, to) the thread slept inside of its work, and not for want of any.
func (h *history) sleptWorking(from, to int64) int64 {
	var ns int64
	for _, d := range h.items {
		ns += min(d.slept, d.overlap(from, to))
	}
	return ns
}

// name says what a deed was: the loop's own work by the server's function that took most of it, where its name is
// known.
func (h *history) name(d deed, from, to int64) string {
	if d.conn != 0 || d.culprit == "" {
		return d.culprit
	}
	if f, ns := longest(h.inner, max(from, d.from), min(to, d.to), func(deed) bool { return true }); ns > 0 {
		return f.culprit
	}
	return d.culprit
}

// item books what a serving thread did between two socket events.
func (b *book) item(e *kernelItemEvent) {
	it := e.Item
	n, ok := b.serving[e.Tgid]
	if !ok || !b.takes(roleServer) {
		return
	}
	client := addrPort(it.Raddr, it.Rport)
	d := recording.WorkDetail{
		Calls: int(it.Calls), Args: int(it.Args), Bytes: int64(it.Bytes), Sends: it.Sends != 0,
		TID: int(e.Tid),
	}
	if it.Calls > 0 {
		d.Op = opName(it.Name, it.Sub)
	}
	if it.Conn != 0 {
		d.Client, d.Process = client.String(), b.ends[client].String()
	}
	from, to := b.time(it.From), b.time(it.To)
	off := int64(0)
	for i := range it.ClkTo.Ns {
		off += int64(it.ClkTo.Ns[i] - it.ClkFrom.Ns[i])
	}
	d.OnCPUNs = max(to-from-off, 0)
	what := culprit(d.Op, d.Client, d.Process)
	if d.Sends {
		what = "sending a reply to " + d.Client
	}
	h := b.history(e.Tid)
	h.items = remember(h.items, deed{
		span: span{from, to}, culprit: what, conn: it.Conn,
		slept: int64(it.ClkTo.Ns[asleep] - it.ClkFrom.Ns[asleep]),
	})
	if f, ns := longest(h.inner, from, to, func(deed) bool { return true }); ns > 0 {
		d.Internal = f.culprit
	}
	b.Sink.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: n.Address,
		Kind: recording.KindWork, Detail: recording.Detail(d),
	})
}

var waitKinds = [clocks]string{
	runnable: recording.KindRunQueue, throttled: recording.KindThrottled,
	frozen: recording.KindFrozen, blocked: recording.KindBlocked,
}

// ongoing books the waits that have not ended when the watch does: the programs report a wait at its end. A thread that
// is merely asleep does not wait.
func (t *Tap) ongoing() {
	var th kernelThread
	now := uint64(t.Clock.Now() - t.offset)
	for slot := range uint32(maxThreads) {
		if t.kernel.coll.Maps["threads"].Lookup(slot, &th) != nil || th.Tid == 0 {
			return // they are given out in order
		}
		if th.State < asleep && now > th.Since && now-th.Since >= uint64(t.MinWork) {
			t.book.offCPU(&kernelOffcpuEvent{
				State: uint8(th.State), Tid: th.Tid, Tgid: th.Tgid, Syscall: th.Syscall,
				Arg: th.Arg, From: th.Since, To: now,
			})
		}
	}
}

// maxThreads is THREADS of bpf/types.h.
const maxThreads = 4096

// offCPU books a wait of a thread.
func (b *book) offCPU(e *kernelOffcpuEvent) {
	if e.State >= asleep {
		return
	}
	if _, serves := b.serving[e.Tgid]; b.Side != "" && serves != b.takes(roleServer) {
		return
	}
	d := recording.ThreadDetail{TID: int(e.Tid), Share: 1, Comm: comm(e.Comm)}
	what := ""
	switch e.State {
	case runnable:
		if e.ByTid == 0 && e.ByComm[0] == 0 {
			break // it waits still
		}
		d.By = &recording.Task{PID: int(e.ByTgid), TID: int(e.ByTid), Comm: comm(e.ByComm)}
		what = process{d.By.PID, d.By.Comm}.String()
		if d.By.PID == 0 {
			what = "the idle task (the CPU was late to wake up)"
		}
	case throttled:
		if b.Quota != nil {
			d.Cgroup, d.Cores = b.Quota(int(e.Tid))
			what = d.Holder()
		}
	case blocked:
		d.Syscall = syscallName(int(e.Syscall))
		if _, serves := b.serving[e.Tgid]; serves && fileCalls[d.Syscall] {
			d.File, d.Device = openFile(int(e.Tgid), int(e.Arg))
		}
		what = d.Call()
	}
	subject := recording.ProcessPrefix + itoa(int(e.Tgid))
	n, serves := b.serving[e.Tgid]
	if serves {
		subject = n.Address
	}
	kind := waitKinds[e.State]
	h := b.history(e.Tid)
	h.waits = remember(h.waits, deed{span: span{b.time(e.From), b.time(e.To)}, culprit: what, state: kind})
	if !serves && e.State == runnable && !b.crowd.admits(b.time(e.From), int64(e.To-e.From)) {
		return
	}
	b.Sink.Event(recording.Event{
		TimeNs: b.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap,
		Subject: subject, Kind: kind,
		Detail: recording.Detail(d),
	})
}
