package host

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

const (
	// callerThreadsShare bounds the CPU time of samples to one part in so many of a core. The runtime's wake-ups and
	// collections of garbage take half as much again, so that all of it is about 1 %.
	callerThreadsShare = 150
	// Samples of a thread are this far apart on average, the closer ones where that takes no more than half of the
	// CPU time that there is.
	closestSamples  = 20 * time.Millisecond
	farthestSamples = 200 * time.Millisecond
	// wakeNs is what it takes to wake up for samples, which no clock of this thread counts: 20 to 70 µs.
	wakeNs = int64(50e3)
	// maxSampled threads are sampled, of all processes: three files of each are open.
	maxSampled = 256
	// minSampled threads are, whatever it takes: then more rarely.
	minSampled = 8
	// listThreadsEvery is how often new threads are looked for.
	listThreadsEvery = time.Second
	// leastOfProcess is the least time of the threads of a process that has ended which is worth a row: some programs
	// start one for each job.
	leastOfProcess = time.Second
	// writeWaitsEvery is how often a long watch records what threads waited for.
	writeWaitsEvery = 30 * time.Second
)

// callerThreads samples the threads of the processes that call servers from this host, by their files in /proc: nothing
// stops them, and of their memory only the descriptors are read that they poll.
type callerThreads struct {
	CallersOptions
	calledSockets
	processes   map[int]*callerProcess
	fresh       map[uint64]freshSleep // in this round, by socket
	sampleNs    int64                 // CPU time of a round of samples, averaged
	left        int                   // threads that were not sampled, at most
	more        bool                  // so were processes
	nextList    int64
	nextWrite   int64
	nextSockets int64
	nextFresh   int64 // for sockets that threads were just seen at
	nextKnown   int64 // for connections of known processes
	nextSearch  int64 // for those of all processes
	buf         [4096]byte
}

// WatchCallerThreads records, until the context ends, where the threads of processes that call the servers from this
// host spend their time, and which dials of them are not answered.
func WatchCallerThreads(ctx context.Context, o CallersOptions) error {
	c, err := newCallerThreads(o)
	if err != nil {
		return err
	}
	defer c.close()
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close()
	for {
		pause := c.round() * time.Duration(c.Pace.Times())
		// so that no program with a period of its own is always seen at the same point of it
		if !alarm.Sleep(pause/2 + rand.N(pause)) {
			break
		}
	}
	c.round()
	c.finish()
	return nil
}

func newCallerThreads(o CallersOptions) (*callerThreads, error) {
	if o.FS == nil {
		o.FS = Root{}
	}
	if o.CostShare <= 0 {
		o.CostShare = callerThreadsShare
	}
	tables, err := openTables(o.FS)
	if err != nil {
		return nil, err
	}
	return &callerThreads{
		CallersOptions: o, processes: map[int]*callerProcess{},
		calledSockets: calledSockets{
			tables: tables, ports: portsOf(o.Nodes), sockets: map[uint64]calledSocket{}, owners: map[uint64]int{},
			others: map[uint64]string{},
		},
		fresh: map[uint64]freshSleep{}, nextWrite: o.Clock.Now() + int64(writeWaitsEvery),
	}, nil
}

// round samples all threads, does what else is due, and gives the pause until the next one.
func (c *callerThreads) round() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadCPU()
	threads := 0
	for _, p := range c.processes {
		threads += c.sample(p)
	}
	c.sampleNs += (threadCPU() - begin + wakeNs - c.sampleNs) / 8
	if len(c.fresh) > 0 {
		c.paced(&c.nextFresh, closestSamples, ofOthers, c.lookAtFresh)
		clear(c.fresh)
	}
	c.lookAtSockets()
	if now := c.Clock.Now(); now >= c.nextList {
		c.nextList = now + int64(listThreadsEvery)
		c.listThreads(threads)
	}
	if now := c.Clock.Now(); now >= c.nextWrite {
		c.nextWrite = now + int64(writeWaitsEvery)
		c.write()
	}
	if len(c.processes) == 0 {
		return c.socketsEvery()
	}
	return max(closestSamples, c.affordable())
}

// affordable is how far apart samples have to be so that they take half of the CPU time that there is.
func (c *callerThreads) affordable() time.Duration {
	return time.Duration(ofSamples * c.CostShare * c.sampleNs)
}

// socketsEvery is how often sockets are looked at.
func (c *callerThreads) socketsEvery() time.Duration {
	if len(c.processes) == 0 {
		return 5 * closestSamples * time.Duration(c.CostShare/callerThreadsShare+1)
	}
	return closestSamples
}

// Of the CPU time that there is samples take half, looks at sockets and at the descriptors of known processes a fifth
// each, and two others a twentieth each.
const (
	ofSamples = 2
	ofLooks   = 5
	ofOthers  = 20
)

// paced reads what is expensive when it is time: it may take one part of the CPU time that there is.
func (c *callerThreads) paced(next *int64, every time.Duration, part int64, read func()) {
	now := c.Clock.Now()
	if now < *next {
		return
	}
	begin := threadCPU()
	read()
	*next = now + max(int64(every), part*c.CostShare*(threadCPU()-begin))
}

// lookAtSockets reads the sockets when it is time, finds whose they are, and counts what those of each process do.
func (c *callerThreads) lookAtSockets() {
	looked, all := false, false
	c.paced(&c.nextSockets, c.socketsEvery(), ofLooks, func() { looked, all = true, c.readSockets(c.Nodes) == nil })
	if !looked {
		return
	}
	c.findOwners()
	now := c.Clock.Now()
	for _, p := range c.processes {
		p.look(c, now, all)
	}
}

// findOwners finds the processes of sockets that are new.
func (c *callerThreads) findOwners() {
	if c.unowned() > 0 {
		c.paced(&c.nextKnown, closestSamples, ofLooks, func() {
			for _, p := range c.processes {
				c.own(p.pid)
			}
		})
	}
	if c.unowned() > 0 {
		part := int64(ofOthers)
		if len(c.processes) == 0 { // there are no samples
			part = ofSamples
		}
		c.paced(&c.nextSearch, callersEvery/2, part, c.search)
	}
}

// search looks for the processes of sockets that are new.
func (c *callerThreads) search() {
	list, err := pids(c.FS)
	if err != nil {
		return
	}
	for _, pid := range list {
		if c.unowned() == 0 {
			return
		}
		if c.processes[pid] == nil && c.own(pid) > 0 && pid != os.Getpid() {
			c.follow(pid)
		}
	}
	for inode := range c.sockets {
		if c.owners[inode] == 0 {
			c.owners[inode] = nobody // that may be seen: they are not searched again
		}
	}
}

// nobody is the owner of a socket whose process was not found.
const nobody = -1

// own notes which of the sockets a process has, and gives their number.
func (c *callerThreads) own(pid int) (own int) {
	p := c.processes[pid]
	if p != nil {
		clear(p.fds)
	}
	_ = eachSocketByFD(c.FS, pid, func(fd string, inode uint64) bool {
		if s, there := c.sockets[inode]; there && (c.owners[inode] <= 0 || c.owners[inode] == pid) {
			own++
			c.owners[inode] = pid
			if p != nil && s.server {
				p.fds[fd] = true
			}
		}
		return own < maxInodes
	})
	return own
}

// servers are connected to other servers, and are no callers.
var servers = map[string]bool{
	"redis-server": true, "redis-sentinel": true, "valkey-server": true, "valkey-sentinel": true, "keydb-server": true,
	"dragonfly": true,
}

// follow begins to sample a process, unless it is a server.
func (c *callerThreads) follow(pid int) {
	program, ok := hostfs.ProgramOf(c.FS, pid)
	if !ok || servers[program.Comm] {
		return
	}
	if len(c.processes) >= maxClients {
		c.more = true
		return
	}
	program.Name = cmp.Or(program.Name, program.Comm)
	c.processes[pid] = &callerProcess{
		pid: pid, program: program, threads: map[int]*callerThread{}, fds: map[string]bool{},
		dials: map[uint64]*callerDial{}, answered: map[netip.AddrPort]bool{}, looked: c.Clock.Now(),
		memory: openMemory(c.FS, pid),
	}
	c.own(pid)
	c.nextList = 0
}

// listThreads takes new threads, as many as there is time for, and gives up some where it is short; sampled is how many
// there are.
func (c *callerThreads) listThreads(sampled int) {
	room := maxSampled
	if need := c.affordable(); need > 0 {
		room = min(room, max(minSampled, int(int64(sampled)*int64(farthestSamples)/int64(need))))
	}
	if c.sampleNs < 2*wakeNs {
		room = maxSampled
	}
	left := 0
	for _, p := range c.sorted() {
		tids, err := c.FS.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
		if err != nil {
			c.forget(p)
			continue
		}
		p.left, p.told = 0, 0
		for _, name := range tids {
			tid, err := strconv.Atoi(name)
			if err != nil || p.threads[tid] != nil {
				continue
			}
			if sampled >= room || !c.open(p, tid) {
				p.left++
				continue
			}
			sampled++
		}
		for tid, t := range p.threads {
			if sampled > room && !t.calls {
				t.close()
				delete(p.threads, tid)
				sampled--
				p.left++
			}
		}
		left += p.left
	}
	c.left = max(c.left, left)
}

func (c *callerThreads) open(p *callerProcess, tid int) bool {
	dir := fmt.Sprintf("/proc/%d/task/%d/", p.pid, tid)
	t := &callerThread{
		sched: openOptional(c.FS, dir+"schedstat"), call: openOptional(c.FS, dir+"syscall"),
		stat: openOptional(c.FS, dir+"stat"),
	}
	if t.sched == nil || t.call == nil || t.stat == nil || len(c.read(t.call)) == 0 {
		t.close()
		return false
	}
	p.threads[tid] = t
	return true
}

// sorted are the processes in the order of their numbers.
func (c *callerThreads) sorted() []*callerProcess {
	var out []*callerProcess
	for _, p := range c.processes {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *callerProcess) int { return a.pid - b.pid })
	return out
}

// forget ends the samples of a process that has ended.
func (c *callerThreads) forget(p *callerProcess) {
	for _, t := range p.threads {
		t.close()
		p.end(t)
	}
	clear(p.threads)
	p.memory.close()
	if p.waits().Ns >= int64(leastOfProcess) {
		c.writeProcess(p)
	}
	delete(c.processes, p.pid)
}

func (c *callerThreads) write() {
	for _, p := range c.sorted() {
		c.writeProcess(p)
	}
}

// writeProcess records where the time of a process went, if it calls a server.
func (c *callerThreads) writeProcess(p *callerProcess) {
	w := p.waits()
	if !p.calls && !p.dialled || w.Ns == 0 {
		return
	}
	subject := recording.ProcessPrefix + strconv.Itoa(p.pid)
	if p.program.Name != "" {
		c.snapshot(subject, recording.SnapshotProgram, recording.Program(p.program))
		p.program.Name = ""
	}
	c.snapshot(subject, recording.SnapshotWaits, w)
}

func (c *callerThreads) snapshot(subject, name string, body any) {
	c.Sink.Snapshot(recording.Snapshot{
		TimeNs: c.Clock.Now(), Source: recording.SourceHost, Subject: subject, Name: name, Body: recording.Detail(body),
	})
}

// finish records the rest.
func (c *callerThreads) finish() {
	c.write()
	if c.left == 0 && !c.more {
		return
	}
	c.Sink.Event(recording.Event{
		TimeNs: c.Clock.Now(), Source: recording.SourceHost, Subject: recording.SubjectMachine,
		Kind: recording.KindBlindSpot, Detail: recording.Detail(recording.BlindSpot{
			What: fmt.Sprintf("what all threads of callers wait for (of %d processes %d threads not)",
				len(c.processes), c.left),
			Why: fmt.Sprintf("at most %d threads of %d processes are sampled, fewer where that takes more than %.2g "+
				"%% of a core, and none whose /proc/PID/syscall may not be read", maxSampled, maxClients,
				100/float64(c.CostShare)),
			Enable: "run as root, with the kernel programs",
		}),
	})
}

func (c *callerThreads) close() {
	for _, p := range c.processes {
		for _, t := range p.threads {
			t.close()
		}
		p.memory.close()
	}
	for _, table := range c.tables {
		table.Close()
	}
}
