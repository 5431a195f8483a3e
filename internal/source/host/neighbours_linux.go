package host

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

const (
	maxNeighbours = 5
	minCores      = 0.01 // a process that uses less disturbs nobody
)

// processCPU is the CPU time of a process in a round.
type processCPU struct {
	start int64 // ticks since boot: another process when it differs
	ticks int64
	round int
}

// findNeighbours names the processes that used CPU time on the server's CPUs since the last round, and adds up the
// server's children (BGSAVE, AOF rewrite).
func (w *watch) findNeighbours() {
	names, err := w.FS.ReadDir("/proc")
	if err != nil {
		return
	}
	now := w.Clock.Now()
	interval := now - w.lastScan
	w.scanRound++
	var found []recording.Neighbour
	children, childTicks := 0, int64(0)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == w.Process.PID {
			continue
		}
		b, ok := w.readScratch("/proc/" + name + "/stat")
		if !ok {
			continue
		}
		s, ok := parseStat(b)
		if !ok {
			continue
		}
		if s.ppid == w.Process.PID {
			children, childTicks = children+1, childTicks+s.utime+s.stime
		}
		if cores := w.coresOf(pid, &s, interval); cores >= minCores {
			found = append(found, recording.Neighbour{
				PID: pid, Command: string(b[s.commBegin:s.commEnd]),
				Cores: cores * w.shareOnCPUs(pid, &s), Child: s.ppid == w.Process.PID,
			})
		}
	}
	w.forgetEnded()
	w.sample(series.Children, float64(children))
	w.sample(series.ChildrenCPU, float64(childTicks*clockTickNs))
	if w.lastScan > 0 {
		w.emitNeighbours(found, interval)
	}
	w.lastScan = now
}

// coresOf is the CPU use of a process since the last round, in cores; 0 in the first round. The whole CPU time of a
// process that began since then counts.
func (w *watch) coresOf(pid int, s *taskStat, interval int64) float64 {
	ticks := s.utime + s.stime
	before, known := w.cpuOf[pid]
	w.cpuOf[pid] = processCPU{start: s.start, ticks: ticks, round: w.scanRound}
	switch {
	case w.lastScan == 0 || interval <= 0:
		return 0
	case !known || before.start != s.start:
		before.ticks = 0
	}
	return float64(ticks-before.ticks) * clockTickNs / float64(interval)
}

func (w *watch) forgetEnded() {
	for pid, p := range w.cpuOf {
		if p.round != w.scanRound {
			delete(w.cpuOf, pid)
			delete(w.callers, pid)
		}
	}
}

// readScratch reads a file into a buffer that is used again.
func (w *watch) readScratch(name string) ([]byte, bool) {
	w.reads.Add(1)
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	n, _ := f.ReadAt(w.scratch[:], 0)
	return w.scratch[:n], n > 0
}

// shareOnCPUs estimates which part of a process' time was on CPUs that the server may use: all of it when the server is
// not pinned, else by the CPUs on which its threads last ran, weighted by their CPU time.
func (w *watch) shareOnCPUs(pid int, s *taskStat) float64 {
	if len(w.allowed) == 0 || len(w.allowed) >= w.cpuCount {
		return 1
	}
	if s.threads == 1 {
		if w.allowed[s.cpu] {
			return 1
		}
		return 0
	}
	threads, err := w.FS.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 1
	}
	here, all := int64(0), int64(1)
	var line [1024]byte
	for i, tid := range threads {
		if i >= maxThreads {
			break
		}
		f, err := w.FS.Open(fmt.Sprintf("/proc/%d/task/%s/stat", pid, tid))
		if err != nil {
			continue
		}
		n, _ := f.ReadAt(line[:], 0)
		f.Close()
		if t, ok := parseStat(line[:n]); ok {
			all += t.utime + t.stime
			if w.allowed[t.cpu] {
				here += t.utime + t.stime
			}
		}
	}
	return float64(here) / float64(all)
}

func (w *watch) emitNeighbours(found []recording.Neighbour, interval int64) {
	found = slices.DeleteFunc(found, func(n recording.Neighbour) bool { return n.Cores < minCores })
	slices.SortFunc(found, func(a, b recording.Neighbour) int {
		return int(1000 * (b.Cores - a.Cores))
	})
	found = found[:min(len(found), maxNeighbours)]
	if len(found) == 0 {
		return
	}
	for i := range found {
		n := &found[i]
		n.Command = w.commandOf(n.PID, n.Command)
		if b, ok := w.read(fmt.Sprintf("/proc/%d/cgroup", n.PID)); ok {
			n.Cgroup = cpuPath(b)
		}
	}
	w.markCallers(found)
	now := w.Clock.Now()
	w.Sink.Event(recording.Event{
		TimeNs: now - interval, DurationNs: interval, Source: recording.SourceHost,
		Subject: w.Node,
		Kind:    recording.KindNeighbours, Detail: recording.Detail(found),
	})
}

// jobTitle is what the children of servers call themselves ("redis-rdb-bgsave").
var jobTitle = regexp.MustCompile(`^(redis|valkey|keydb)-[a-z-]{1,30}$`)

// maxComm is the length of the kernel's name of a process, at which longer ones are cut (TASK_COMM_LEN).
const maxComm = 15

// commandOf is the program of a process: the kernel's name of it, in full where that is the name of its file, or the
// job of a server's child. Else nothing of argv[0] is taken: a process can set it to anything.
func (w *watch) commandOf(pid int, comm string) string {
	if pid == os.Getpid() {
		return recording.OwnNeighbour(comm)
	}
	b, ok := w.read(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !ok || len(b) == 0 {
		return comm // a kernel thread
	}
	first, _, _ := bytes.Cut(b, []byte{0})
	name := strings.TrimSuffix(commandName(string(first)), ":")
	if jobTitle.MatchString(name) {
		return name
	}
	exe, err := w.FS.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if full := path.Base(exe); err == nil && len(comm) == maxComm && strings.HasPrefix(full, comm) {
		return full
	}
	return comm
}
