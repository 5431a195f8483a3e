//go:build linux

package tap

import (
	"debug/elf"
	"fmt"
	"path"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// elsewhere records that an event loop of a client slept in a system call on something else than its events, or
// another thread of it until one of its process woke it.
func (r *recorder) elsewhere(e *kernelOffcpuEvent) {
	if !r.records(roleClient) || e.Away == 0 && !r.lockLimit.admits(r.time(e.From), int64(e.To-e.From)) {
		return
	}
	d := recording.ThreadDetail{TID: int(e.Tid), Share: 1, Comm: comm(e.Comm), Syscall: syscallName(int(e.Syscall))}
	if open := r.openFile(e.File, int(e.Arg)); open != (hostfs.Descriptor{}) && hostfs.TakesDescriptor(d.Syscall) {
		d.File, d.Device, d.Other = open.File, open.Device, open.Other
	}
	if e.ByTid != 0 && e.ByTid != e.Tid {
		d.By = &recording.Task{PID: int(e.ByTgid), TID: int(e.ByTid), Comm: comm(e.ByComm)}
	}
	kind := recording.KindLockWait
	if e.Away != 0 {
		kind = recording.KindElsewhere
		l := r.threadLog(e.Tid)
		l.waits = appendBounded(l.waits, interval{
			span: span{r.time(e.From), r.time(e.To)}, culprit: d.Comm + recording.AsleepIn + d.Call(),
			state: recording.LoopWait,
		})
	}
	r.Sink.Event(recording.Event{
		TimeNs: r.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + itoa(int(e.Tgid)), Kind: kind, Detail: recording.Detail(d),
	})
}

// operation records a call for which a thread waited longer than the call took. It waited for a connection that other
// threads used, or for an interpreter's lock after it had read the reply; or a thread that waits for events sent the
// request and read the reply for it, and had other things to do before or after that.
func (r *recorder) operation(e *kernelOperationEvent) {
	client, server := endsOf(&e.Call.Addr)
	n, ok := r.nodeOf(&e.Call.Addr, server, e.Tgid)
	if !ok || !r.records(roleClient) || e.Call.Addr.Observer != notObserver || !r.selects(client) {
		return
	}
	c := recording.Call{
		Source: recording.SourceTap, Conn: client.String(), Op: r.opOf(uint16(e.Call.Op)).name,
		IntendedNs: r.time(e.From), EndNs: r.time(e.To), Node: n.Address, Slot: -1, Side: recording.Client,
		Client: r.clients[client].String(),
	}
	c.StartNs = min(max(r.time(e.Call.From), c.IntendedNs), c.EndNs)
	read := min(max(r.time(e.Call.To), c.StartNs), c.EndNs)
	if e.LoopTid == 0 {
		ready := min(max(r.time(e.Locked), c.IntendedNs), c.StartNs)
		got := min(max(r.time(e.Got), ready), c.StartNs)
		segs := add(nil, recording.App, recording.LockWait, c.IntendedNs, ready)
		if len(segs) > 0 && r.functionIn != nil {
			segs[0].Culprit = r.functionIn(e.Tgid, e.Holder[:])
		}
		segs = add(segs, recording.App, recording.PoolWait, ready, got)
		locked := max(read-int64(e.Call.LockedNs), got)
		segs = add(segs, recording.Nobody, recording.Unexplained, got, locked)
		segs = add(segs, recording.Client, recording.OffCPU, locked, c.EndNs)
		if i := len(segs) - 1; i >= 0 && segs[i].State == recording.OffCPU {
			segs[i].Culprit = recording.LockOfProcess
		}
		r.pass(c, segs)
		return
	}
	segs := r.waitForLoop(e, c.IntendedNs, c.StartNs)
	segs = add(segs, recording.Nobody, recording.Unexplained, c.StartNs, read)
	r.pass(c, merged(append(segs, r.waitForLoop(e, read, c.EndNs)...)))
}

// waitForLoop is what an event loop did while a thread waited for it. While it had nothing to do, the thread waited for
// something else in its process, such as a connection.
func (r *recorder) waitForLoop(e *kernelOperationEvent, from, to int64) []recording.Segment {
	awake := min(max(r.time(e.LoopAwake), from), to)
	segs := add(nil, recording.App, recording.PoolWait, from, awake)
	segs = append(segs, add(nil, recording.Client, recording.LoopWait, awake, to)...)
	for i := range segs {
		if segs[i].State == recording.LoopWait {
			segs[i].Culprit = comm(e.LoopComm)
		}
	}
	if l := r.threads[e.LoopTid]; l != nil {
		for _, w := range l.waits {
			wait := recording.Segment{
				Actor: recording.Client, State: w.state, FromNs: w.from, ToNs: w.to, Culprit: w.culprit,
			}
			for _, over := range []string{recording.PoolWait, recording.LoopWait} {
				segs, _ = lay(segs, wait, over, 1<<62)
			}
		}
	}
	return segs
}

// failedDials are dials of one thread, one after the other, of which no connection came.
type failedDials struct {
	pid       uint32
	from, to  int64
	addresses []string
	spans     []span
}

const (
	// nextDial is the longest time from the end of a failed dial to the next that is about the same connection.
	// Bound: guess, a client's pause before it tries again.
	nextDial = int64(time.Second)
	// atOnce is the longest time to the next dial of another thread that is about the same connection.
	// Bound: guess.
	atOnce = int64(5 * time.Millisecond)
	// maxFailedDials: what failed before says nothing new.
	maxFailedDials = 16
)

// dialFailed adds a dial to those of its thread.
func (r *recorder) dialFailed(pid, tid uint32, from, to int64, address string) {
	f := r.failedDials[tid]
	if f == nil || from-f.to > nextDial || len(f.spans) >= maxFailedDials {
		f = &failedDials{pid: pid, from: from}
		put(r, r.failedDials, tid, f)
	}
	f.to, f.addresses, f.spans = to, append(f.addresses, address), append(f.spans, span{from, to})
}

// dialled is how a connection of a client came: its dial, and those before it that failed.
type dialled struct {
	from, opened int64
	named        int64        // until when a name server was asked first; 0: none was
	failed       *failedDials // nil: there were none
}

// dialledBy notes the dial of a connection, with those before it that failed, and the question to a name server before
// that: its first call was wanted before them. A goroutine may go on in another thread, but does so at once.
func (r *recorder) dialledBy(e *kernelConnEvent, client clientEnd) {
	if e.Dialled == 0 {
		return
	}
	d := &dialled{from: r.time(e.Dialled), opened: r.time(e.Now)}
	tid := e.Tid
	if r.failedDials[tid] == nil {
		for of, f := range r.failedDials {
			if f.pid == e.Tgid && d.from >= f.to && d.from-f.to <= atOnce {
				tid = of
			}
		}
	}
	if f := r.failedDials[tid]; f != nil {
		delete(r.failedDials, tid)
		if d.from >= f.to && d.from-f.to <= nextDial {
			d.from, d.failed = f.from, f
		}
	}
	at := d.from
	for _, q := range r.dnsQueries { // for IPv4 and for IPv6
		if q.done && q.pid == int(e.Tgid) && at >= q.last && at-q.last <= atOnce {
			d.from, d.named = min(d.from, q.since), max(d.named, q.last)
		}
	}
	put(r, r.dialled, client, d)
}

// wantedBefore counts the first call of a connection from its dial on. Where the call is recorded for itself, that row
// begins with the dial; else it is recorded, by the end that saw its handshake, where what came before makes it slow.
// ready is when the connection was. What its client did from then until the call is not known. A connection that is
// not used at once was opened for later.
func (r *recorder) wantedBefore(h *handshake, c recording.Call, ready int64, itself bool) {
	d := r.dialled[h.client]
	delete(r.dialled, h.client)
	if d == nil || c.StartNs-ready > mostPause || recording.MayBlock(c.Op) || !r.selects(h.client) {
		return
	}
	side := recording.Dialled
	if d.failed != nil {
		side = recording.Operations
	}
	r.countOperation(side, c, d.from)
	if !itself && c.EndNs-d.from < int64(r.Slow) {
		return
	}
	segs := add(nil, recording.App, recording.Dial, d.from, d.opened)
	if d.named != 0 {
		segs, _ = lay(segs, recording.Segment{
			Actor: recording.App, State: recording.Dial, FromNs: d.from, ToNs: d.named, Culprit: "dns",
		}, recording.Dial, 1<<62)
	}
	if d.failed != nil {
		for i, s := range d.failed.spans {
			segs, _ = lay(segs, recording.Segment{
				Actor: recording.App, State: recording.Dial, FromNs: s.from, ToNs: s.to,
				Culprit: recording.NoAnswerFrom + d.failed.addresses[i],
			}, recording.Dial, 1<<62)
		}
	}
	encrypted := min(d.opened+h.tlsNs, c.StartNs)
	segs = add(segs, recording.App, recording.TLS, d.opened, encrypted)
	ready = min(max(ready, encrypted), c.StartNs)
	segs = add(segs, recording.App, recording.Handshake, encrypted, ready)
	segs = add(segs, recording.Nobody, recording.Unexplained, ready, c.StartNs)
	put(r, r.openings, callOnConn{c.Conn, c.Seq}, segs)
	if !itself {
		c.Client = r.clients[h.client].String()
		r.pass(c, add(nil, recording.Nobody, recording.Unexplained, c.StartNs, c.EndNs))
	}
}

// callOnConn is a call by the address of its client, and the byte after its request.
type callOnConn struct {
	client string
	seq    uint32
}

// afterOpening adds to a call how its connection was opened, if that was for this call.
func (r *recorder) afterOpening(c *recording.Call, segs []recording.Segment) []recording.Segment {
	k := callOnConn{c.Conn, c.Seq}
	opening := r.openings[k]
	if len(opening) == 0 || c.IntendedNs != c.StartNs || c.StartNs <= opening[0].FromNs {
		return segs
	}
	delete(r.openings, k)
	c.IntendedNs = opening[0].FromNs
	opening = clip(opening, c.IntendedNs, c.StartNs)
	opening[len(opening)-1].ToNs = c.StartNs
	return merged(append(opening, segs...))
}

// waitedCalls are the calls of a command that were wanted before they were made.
type waitedCalls struct{ node, side, op string }

// countOperation has a call counted for the time that its thread waited for it, from when it was wanted.
func (r *recorder) countOperation(side string, c recording.Call, wanted int64) {
	for side, ns := range map[string]int64{recording.AwaitedCalls: c.EndNs - c.StartNs, side: c.EndNs - wanted} {
		k := waitedCalls{c.Node, side, c.Op}
		if r.waited[k] == nil {
			put(r, r.waited, k, &recording.LatencyCounts{})
		}
		r.waited[k].Add(bucketNs(bucketOf(ns)), 1)
	}
}

// writeWaitedCalls records them, after the histograms that have the calls.
func (r *recorder) writeWaitedCalls(now int64) {
	for k, h := range r.waited {
		if encoded, err := h.Encode(); err == nil {
			r.Sink.Histogram(recording.Histogram{
				Second: now / 1e9, Source: recording.SourceTap, Node: k.node, Op: k.side + " " + k.op, HDR: encoded,
			})
		}
	}
	clear(r.waited)
}

// mostPause from the handshake of a new connection to the call that it was made for.
// Bound: guess.
const mostPause = int64(5 * time.Millisecond)

// noReply records a call that waits for its reply when the watch ends: it has taken as long as that by then. Where both
// ends know of it the first one counts.
func (r *recorder) noReply(e *kernelConnSnapshot) {
	client, server := endsOf(&e.Addr)
	n, ok := r.nodeOf(&e.Addr, server, e.Tgid)
	if !ok || !r.records(e.Addr.Role) || r.noReplies[client] || r.sample.wasLeftOut(client) || !r.selects(client) {
		return
	}
	put(r, r.noReplies, client, true)
	r.pass(recording.Call{
		Source: recording.SourceTap, Conn: client.String(), Op: "?", IntendedNs: r.time(e.From),
		StartNs: r.time(e.From), EndNs: r.time(e.Now), Node: n.Address, Slot: -1, Side: sideOf(e.Addr.Role),
		Client: r.clients[client].String(), Error: recording.NoReplyYet,
	}, nil)
}

// notDialled takes a dial to a port of a server, at an address that is not watched, of which no connection came.
func (r *recorder) notDialled(e *kernelNotDialledEvent) {
	if !r.records(roleClient) {
		return
	}
	r.dialFailed(e.Tgid, e.Tid, r.time(e.From), r.time(e.To), addrPort(e.Raddr, uint16(e.Rport)).String())
}

// callsByThread tells the programs that the threads of a process are its callers, unless it is a Go program: there
// goroutines call, any thread works for any of them, and what they wait for is seen in its client library.
func (t *Tap) callsByThread(pid uint32) {
	isGo, calling := true, kernelCallingTHREADS_CALL
	if exe, err := t.Files.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && hasPythonsLock(exe) {
		calling = kernelCallingONE_AT_A_TIME
	}
	err := withELF(t.Files.Path(fmt.Sprintf("/proc/%d/exe", pid)), func(f *elf.File, name string) error {
		isGo = f.Section(".gopclntab") != nil || f.Section(".go.buildinfo") != nil
		if isGo {
			t.watchGo(pid, f, name)
		}
		return nil
	})
	if err == nil && !isGo {
		_ = t.kernel.coll.Maps[kernelMapThreadsCall].Put(pid, calling) // else its calls count as they are
	}
}

// hasPythonsLock reports whether a program is CPython with its lock: the builds without one end in "t".
func hasPythonsLock(exe string) bool {
	name := path.Base(exe)
	return strings.HasPrefix(name, "python") && !strings.HasSuffix(name, "t")
}
