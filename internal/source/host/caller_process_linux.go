package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// callerProcess is a process with connections to servers.
type callerProcess struct {
	pid      int
	threads  map[int]*callerThread
	ended    timeSum         // threads that called, and have ended
	fds      map[string]bool // descriptors of connections to servers
	calls    bool            // it had one
	dialled  bool            // it dialled the port of a server at another address, in vain
	program  hostfs.Program  // what it runs; without a name once that was recorded
	left     int             // threads that are not sampled
	told     int             // dials that were recorded, since threads were listed
	looked   int64           // when its sockets were
	memory   processMemory
	dials    map[uint64]*callerDial // those that no server answered yet, by inode
	answered map[netip.AddrPort]bool
}

// processMemory is for the descriptor that a thread polls: the call has its address alone.
type processMemory struct{ mem, pages hostfs.File }

func openMemory(fs FS, pid int) (m processMemory) {
	m.mem = openOptional(fs, fmt.Sprintf("/proc/%d/mem", pid))
	m.pages = openOptional(fs, fmt.Sprintf("/proc/%d/pagemap", pid))
	return m
}

func (m processMemory) close() {
	for _, f := range []hostfs.File{m.mem, m.pages} {
		if f != nil {
			f.Close()
		}
	}
}

// polled is the descriptor of the struct pollfd at an address; -1 where it cannot be read at once. What is not in
// memory (Documentation/admin-guide/mm/pagemap.rst) may have to be fetched by anybody (userfaultfd, FUSE): that is not
// waited for.
func (m processMemory) polled(at uint64) int {
	const word, present = 4, 1 << 63
	var page [8]byte
	var fd [word]byte
	if m.mem == nil || m.pages == nil || at%word != 0 || at > math.MaxInt64 {
		return -1
	}
	entry := int64(at) / int64(os.Getpagesize()) * int64(len(page))
	if _, err := m.pages.ReadAt(page[:], entry); err != nil || binary.NativeEndian.Uint64(page[:])&present == 0 {
		return -1
	}
	if _, err := m.mem.ReadAt(fd[:], int64(at)); err != nil {
		return -1
	}
	return int(int32(binary.NativeEndian.Uint32(fd[:])))
}

// callerThread is one of its threads.
type callerThread struct {
	threadTime
	sched, call, stat hostfs.File
	calls             bool  // it was seen at a connection to a server
	nextAwaits        int64 // when its epoll is read again, to see whether that waits for one
}

func (t *callerThread) close() {
	for _, f := range []hostfs.File{t.sched, t.call, t.stat} {
		if f != nil {
			f.Close()
		}
	}
}

// sample takes a sample of each thread, and gives their number.
func (c *callerThreads) sample(p *callerProcess) int {
	for tid, t := range p.threads {
		if !c.sampleThread(p, t) {
			t.close()
			delete(p.threads, tid)
			p.end(t)
		}
	}
	return len(p.threads)
}

func (p *callerProcess) end(t *callerThread) {
	if t.calls {
		t.threads = 1
		p.ended.add(&t.timeSum)
	}
}

// sampleThread reads what a thread does, false where it has ended. For one that still sleeps one file is enough.
func (c *callerThreads) sampleThread(p *callerProcess, t *callerThread) bool {
	s, ok := parseSchedstat(c.readPromptly(t.sched))
	if !ok {
		return false
	}
	if t.sleepsOn(s) {
		t.threadTime.sample(c.Clock.Now(), s, t.reason, t.what)
		return true
	}
	line := c.read(t.call)
	if len(line) == 0 {
		return false
	}
	reason, fd := awake, -1
	what := recording.WaitsFor{}
	call, args := syscallOf(line)
	if call != "" {
		reason, fd = sleepOf(call, args)
		stat, _ := parseStat(c.readPromptly(t.stat))
		switch stat.state {
		case 'S':
		case 'R':
			reason, fd = awake, -1
		case 'D':
			reason = forDisk
		case 'T', 't':
			reason, fd = whileFrozen, -1
		default:
			return false
		}
	}
	if reason == forOne {
		reason = forEvents
		if one := p.memory.polled(args[0]); one >= 0 {
			if of, is := c.atDescriptor(p, t, forOthers, one); of != forOthers {
				reason, what = of, is
			}
		}
	}
	if fd >= 0 && reason != forDisk {
		reason, what = c.atDescriptor(p, t, reason, fd)
	}
	if reason == forOthers || reason == forDisk {
		what = c.inCall(p, call, args)
	}
	t.threadTime.sample(c.Clock.Now(), s, reason, what)
	return true
}

// inCall is the system call in which a thread sleeps, with what it is about.
func (c *callerThreads) inCall(p *callerProcess, call string, args [4]uint64) recording.WaitsFor {
	d := recording.ThreadDetail{Syscall: strings.ReplaceAll(call, "-", " ")}
	var open hostfs.Descriptor
	if hostfs.TakesDescriptor(call) && args[0] < 1<<31 {
		open = hostfs.DescriptorOf(c.FS, p.pid, int(args[0]))
		d.Other = open.Other
	}
	return recording.WaitsFor{Call: d.Call(), File: open.File, Device: open.Device}
}

// read reads a file from its beginning; nothing where that is not possible.
func (c *callerThreads) read(f hostfs.File) []byte {
	n, _ := f.ReadAt(c.buf[:], 0)
	return c.buf[:n]
}

// readPromptly is read of a file for which the kernel waits for nothing: not of syscall.
func (c *callerThreads) readPromptly(f hostfs.File) []byte {
	prompt, ok := f.(hostfs.Prompt)
	if !ok {
		return c.read(f)
	}
	n, _ := prompt.ReadPromptly(c.buf[:])
	return c.buf[:max(n, 0)]
}

// atDescriptor is what a thread sleeps for in a system call on a descriptor, and the service if it is another one.
func (c *callerThreads) atDescriptor(p *callerProcess, t *callerThread, reason sleepReason, fd int) (sleepReason,
	recording.WaitsFor,
) {
	none := recording.WaitsFor{}
	if reason == forEvents {
		if now := c.Clock.Now(); !t.calls && now >= t.nextAwaits {
			t.nextAwaits = now + int64(listThreadsEvery)
			t.calls = c.awaits(p, fd)
		}
		return reason, none
	}
	link, err := c.FS.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid, fd))
	if err != nil {
		return reason, none
	}
	number, ok := strings.CutPrefix(link, "socket:[")
	inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	if !ok || err != nil {
		return reason, none
	}
	if s, there := c.sockets[inode]; there {
		return p.at(t, s), none
	}
	other, known := c.others[inode]
	if !known && len(c.fresh) < maxSampled {
		c.fresh[inode] = freshSleep{p, t}
	}
	if other != "" && reason == forOthers {
		return forPeer, recording.WaitsFor{Address: other}
	}
	return reason, none
}

// at notes that a thread sleeps at a socket to the port of a server, and gives for what.
func (p *callerProcess) at(t *callerThread, s calledSocket) sleepReason {
	if !s.dialling && !s.server {
		return forOthers
	}
	t.calls = true
	if s.dialling {
		return forDial
	}
	p.calls = true
	return forReply
}

// freshSleep is a thread that sleeps at a socket which was not there when sockets were looked at.
type freshSleep struct {
	p *callerProcess
	t *callerThread
}

// lookAtFresh looks at once whether these sockets are to servers: many connections live for milliseconds.
func (c *callerThreads) lookAtFresh() {
	all := c.readSockets(c.Nodes) == nil
	others := map[uint64]string{}
	for inode, f := range c.fresh {
		s, there := c.sockets[inode]
		if !there {
			others[inode] = ""
			continue
		}
		c.owners[inode] = f.p.pid
		f.t.reason = f.p.at(f.t, s)
	}
	if len(others) == 0 || !all {
		return
	}
	c.readOthers(others)
	for inode, to := range others {
		if t := c.fresh[inode].t; to != "" && (t.reason == forOthers || t.reason == forEvents) {
			t.reason, t.what = forPeer, recording.WaitsFor{Address: to}
		}
	}
	if len(c.others) >= maxInodes {
		clear(c.others)
	}
	maps.Copy(c.others, others)
}

// maxAwaited bounds the list of descriptors of an epoll that is read, in bytes.
const maxAwaited = 16 << 10

// awaits reports whether an epoll waits for a connection to a server.
func (c *callerThreads) awaits(p *callerProcess, epoll int) bool {
	f, err := c.FS.Open(fmt.Sprintf("/proc/%d/fdinfo/%d", p.pid, epoll))
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, maxAwaited)
	n, _ := f.ReadAt(b, 0)
	for line := range bytes.Lines(b[:n]) {
		if of, ok := bytes.CutPrefix(line, []byte("tfd:")); ok {
			if fields := bytes.Fields(of); len(fields) > 0 && p.fds[string(fields[0])] {
				return true
			}
		}
	}
	return false
}

// callerDial is a dial of a process to the port of a server, at another address. Times in nanoseconds.
type callerDial struct {
	to       netip.AddrPort
	from, at int64 // seen from, and last
}

// leastUnanswered is the time after which a dial counts as one that is not answered: no path takes as long.
const leastUnanswered = 500 * time.Millisecond

// look takes what the sockets of a process do; all: none of them is missing.
func (p *callerProcess) look(c *callerThreads, now int64, all bool) {
	for inode, s := range c.sockets {
		if c.owners[inode] != p.pid {
			continue
		}
		switch {
		case s.dialling:
		case s.server:
			p.calls = true
		default:
			if len(p.answered) >= maxInodes {
				clear(p.answered)
			}
			p.answered[s.remote] = true
			delete(p.dials, inode)
		}
		if s.dialling && !s.server {
			if p.dials[inode] == nil {
				p.dials[inode] = &callerDial{to: s.remote, from: now - (now-p.looked)/2}
			}
			p.dials[inode].at = now
		}
	}
	p.looked = now
	for inode, d := range p.dials {
		if d.at == now {
			continue
		}
		delete(p.dials, inode)
		if all && d.at-d.from >= int64(leastUnanswered) && !p.answered[d.to] && p.told < maxDialsTold {
			c.tellDial(p, d, d.at+(now-d.at)/2) // it ended between two looks
		}
	}
}

// maxDialsTold dials of a process are recorded between two looks for new threads.
const maxDialsTold = 50

// tellDial records a dial that was given up.
func (c *callerThreads) tellDial(p *callerProcess, d *callerDial, end int64) {
	p.dialled = true
	p.told++
	c.Sink.Event(recording.Event{
		TimeNs: d.from, DurationNs: end - d.from, Source: recording.SourceHost,
		Subject: recording.ProcessPrefix + strconv.Itoa(p.pid), Kind: recording.KindUnansweredDial,
		Detail: recording.Detail(recording.UnansweredDial{To: d.to.String(), Calls: p.calls}),
	})
}

// waits is where the time of its threads went that were seen to call; if none was, since they wait too briefly, of
// those that ran.
func (p *callerProcess) waits() recording.ThreadWaits {
	sum, others := p.ended, p.left
	assumed := sum.threads == 0
	for _, t := range p.threads {
		assumed = assumed && !t.calls
	}
	for _, t := range p.threads {
		if t.calls || assumed && t.ran > 0 {
			t.threads = 1
			sum.add(&t.timeSum)
		} else {
			others++
		}
	}
	w := sum.waits()
	w.Others, w.Assumed = others, assumed
	return w
}
