package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"
)

const (
	maxClients = 8
	maxInodes  = 2000 // connections whose owners are searched
	// maxNewEnds is how many connections, of those that were not there at the first look, are recorded with their
	// process at each look: of those that come and go the tap knows it.
	maxNewEnds  = 100
	maxPrograms = 256 // processes whose program is read
)

// connOwner is the socket and the process of a client: the descriptor of another one, and its address over a Unix
// socket with it, may be used again at once.
type connOwner struct {
	inode uint64
	pid   int
}

// client is a process on this host with connections to the server.
type client struct {
	pid         int
	connections int
	cpu         cgroup
	threads     map[string]schedstat // by TID, in the last round
	at          int64
}

// findClients finds the processes at the other ends of the server's connections.
func (w *watch) findClients() {
	inodes := w.peerInodes()
	if len(inodes) == 0 {
		w.forgetGone(nil)
		w.local = nil
		return
	}
	owners := w.ownersOf(inodes)
	w.recordEnds(inodes, owners)
	count := countOwned(owners)
	delete(count, w.Process.PID)
	pids := make([]int, 0, len(count))
	for pid := range count {
		pids = append(pids, pid)
	}
	slices.SortFunc(pids, func(a, b int) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return a - b
	})
	local := []*client{}
	for _, pid := range pids[:min(len(pids), maxClients)] {
		local = append(local, w.client(pid, count[pid]))
	}
	w.forgetGone(local)
	w.local = local
}

// forgetGone forgets the numbers of processes that are no clients any more: their numbers would add up in a long watch.
func (w *watch) forgetGone(now []*client) {
	for _, c := range w.local {
		if !slices.Contains(now, c) {
			subject := recording.ProcessPrefix + strconv.Itoa(c.pid) + "\x00"
			maps.DeleteFunc(w.last, func(key string, _ float64) bool { return strings.HasPrefix(key, subject) })
		}
	}
}

// client is the state of a process: that of the last round, or a new one.
func (w *watch) client(pid, connections int) *client {
	for _, c := range w.local {
		if c.pid == pid {
			c.connections = connections
			return c
		}
	}
	c := &client{pid: pid, connections: connections}
	body := map[string]any{"connections": connections}
	if p, err := describe(w.FS, pid, Query{}, 0); err == nil {
		body["comm"] = p.Comm // argv[0] may hold anything
	}
	if pid == os.Getpid() {
		body["self"] = true
	} else if l := librariesOf(w.FS, pid); len(l) > 0 {
		body["libraries"] = l
	}
	if groups, err := resolveCgroups(w.FS, pid); err == nil {
		c.cpu = groups.cpu
		body["cgroup"] = groups.cpu.path
	}
	w.snapshot(recording.ProcessPrefix+strconv.Itoa(pid), "process", body)
	return c
}

// peerInodes finds the sockets that are the other ends, with the addresses that CLIENT LIST has of them.
func (w *watch) peerInodes() map[uint64]string {
	inodes := map[uint64]string{}
	w.unixPeers(func(inode uint64, address string) bool {
		inodes[inode] = address
		return len(inodes) < maxInodes/2
	})
	if len(w.peers) == 0 {
		return inodes
	}
	spaces, err := netSpaces(w.FS)
	if err != nil {
		return inodes
	}
	// in every network namespace of this host, those whose local address is the remote address that the server sees
	for _, space := range spaces {
		eachSocket(w.FS, space.pid, SocketQuery{States: 1 << tcpEstablished}, func(s *Socket) bool {
			if _, ok := w.peers[s.Local]; ok && s.Inode != 0 {
				inodes[s.Inode] = unmapped(s.Local).String()
			}
			return len(inodes) < maxInodes
		})
	}
	return inodes
}

// ownersOf finds which process holds each of the sockets. Known clients are read first: most often they hold all of
// them.
func (w *watch) ownersOf(inodes map[uint64]string) map[uint64]int {
	owners := map[uint64]int{}
	list, err := pids(w.FS)
	if err != nil {
		return owners
	}
	for i, c := range w.local {
		if j := slices.Index(list, c.pid); j > i {
			list[i], list[j] = list[j], list[i]
		}
	}
	for _, pid := range list {
		if len(owners) == len(inodes) {
			break
		}
		err := eachSocketFD(w.FS, pid, func(inode uint64) bool {
			if _, ours := inodes[inode]; ours && owners[inode] == 0 { // a child may hold those of its parent, too
				owners[inode] = pid
			}
			return len(owners) < len(inodes)
		})
		if errors.Is(err, os.ErrPermission) {
			w.blind("clients on this host that belong to other users", err.Error(),
				"run as root or with CAP_SYS_PTRACE")
		}
	}
	return owners
}

// countOwned is how many sockets each process has.
func countOwned(owners map[uint64]int) map[int]int {
	count := map[int]int{}
	for _, pid := range owners {
		count[pid]++
	}
	return count
}

// recordEnds writes which process has each connection, as far as it was not written yet, and what the process runs:
// also of connections from before the watch on which nothing is sent.
func (w *watch) recordEnds(inodes map[uint64]string, owners map[uint64]int) {
	before, room := w.ends, maxNewEnds
	if before == nil {
		room = maxInodes
	}
	w.ends = map[string]connOwner{}
	programs := map[int]hostfs.Program{}
	for inode, pid := range owners {
		address := inodes[inode]
		if pid == os.Getpid() {
			continue
		}
		now := connOwner{inode, pid}
		if before[address] == now {
			w.ends[address] = now
		}
		p, known := w.programs[pid]
		if !known && len(programs) < maxPrograms {
			p, known = hostfs.ProgramOf(w.FS, pid)
			if p.Name = cmp.Or(p.Name, p.Comm); known {
				w.snapshot(recording.ProcessPrefix+strconv.Itoa(pid), recording.SnapshotProgram, recording.Program(p))
			}
		}
		if known {
			programs[pid] = p
		}
		if !known || w.ends[address] == now || room == 0 {
			continue
		}
		room--
		w.ends[address] = now
		w.snapshot(recording.ConnPrefix+address, recording.SnapshotEnds,
			recording.ConnEnds{Node: w.Node, PID: pid, Comm: p.Comm})
	}
	w.programs = programs
}

// sampleClients samples each client process and the limits of its cgroup.
func (w *watch) sampleClients() {
	done := map[string]bool{w.groups.cpu.path: true}
	for _, c := range w.local {
		if !w.sampleClient(c) {
			continue
		}
		if c.cpu.known() && !done[c.cpu.path] {
			done[c.cpu.path] = true
			w.cgroupCPU(c.cpu, false)
		}
	}
}

// sampleClient samples the CPU time of a process, the sum of its threads' run delays, and of its busiest thread since
// the last round the shares of the time that it ran and that it waited for a CPU.
func (w *watch) sampleClient(c *client) bool {
	pid := strconv.Itoa(c.pid)
	dir := fmt.Sprintf("/proc/%d/", c.pid)
	b, ok := w.readScratch(dir + "stat")
	if !ok {
		return false
	}
	s, ok := parseStat(b)
	if !ok {
		return false
	}
	w.sampleOf(series.ClientCPU, pid, float64((s.utime+s.stime)*clockTickNs))
	w.sampleOf(series.ClientThreads, pid, float64(s.threads))
	w.sampleOf(series.ClientConnections, pid, float64(c.connections))
	w.clientCounters(pid, c, &s)
	tids, err := w.FS.ReadDir(dir + "task")
	if err != nil {
		return false
	}
	now, threads := w.Clock.Now(), map[string]schedstat{}
	delay, most := int64(0), schedstat{}
	for i, tid := range tids {
		b, ok := w.readScratch(dir + "task/" + tid + "/schedstat")
		t, good := parseSchedstat(b)
		if !ok || !good || i >= maxThreads {
			continue
		}
		threads[tid] = t
		delay += t.delayNs
		if before, known := c.threads[tid]; known &&
			t.runNs-before.runNs+t.delayNs-before.delayNs > most.runNs+most.delayNs {
			most = schedstat{runNs: t.runNs - before.runNs, delayNs: t.delayNs - before.delayNs}
		}
	}
	w.sampleOf(series.ClientDelay, pid, float64(delay))
	if dt := float64(now - c.at); c.threads != nil && dt > 0 {
		w.sampleOf(series.ClientBusiestRun, pid, float64(most.runNs)/dt)
		w.sampleOf(series.ClientBusiestDelay, pid, float64(most.delayNs)/dt)
	}
	c.threads, c.at = threads, now
	return true
}
