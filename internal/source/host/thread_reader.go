package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"sync/atomic"

	"slowpath/internal/source/hostfs"
)

// maxLevels bounds the cgroup levels with a quota that are read each time.
const maxLevels = 8

// reading is the state and the counters of the main thread at one time. at is in the clock of the recording.
type reading struct {
	at    int64
	state byte // R S D T t Z X …, as in /proc/PID/stat
	cpu   int
	schedstat
	frozenBy          string           // cgroup that froze it; "-" for a signal or a debugger
	throttledNs       [maxLevels]int64 // of each level in levels
	levels            *throttleLevels  // the levels of throttledNs
	syscall           string           // when the state is D, or the thread is held up
	wchan             string           // when the state is D
	heldUp            bool             // asleep in a system call in which no server waits for work
	hostfs.Descriptor                  // what that call is about
}

// throttleLevels are the open cpu.stat files of the levels with a quota. It is replaced as a whole when a limit
// changes.
type throttleLevels struct {
	limits []cpuLimit
	files  []hostfs.File
}

// threadReader reads one thread out of open files.
type threadReader struct {
	pid            int
	fs             FS
	sleep          sleepReading
	stat, sched    hostfs.File
	syscall, wchan hostfs.File // nil where not allowed
	freezerV1      hostfs.File // freezer.state
	freezerPath    string      // of freezerV1
	eventsV2       hostfs.File // cgroup.events
	eventsPath     string
	levels         atomic.Pointer[throttleLevels]
	current        *throttleLevels   // levels of the last reading
	names          map[string]string // wchan by itself, so that a known name is not allocated again
	last           schedstat
	buf            [4096]byte
	reads          atomic.Int64
}

// sleepReading is where the thread sleeps, for as long as it is not given a CPU.
type sleepReading struct {
	arrivals int64
	syscall  string
	hostfs.Descriptor
}

// openThread opens the files of a thread. Only stat and schedstat must be there.
func openThread(fs FS, pid, tid int, groups cgroups) (*threadReader, error) {
	r := &threadReader{names: map[string]string{}, pid: pid, fs: fs}
	dir := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	var err error
	if r.stat, err = fs.Open(dir + "stat"); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("thread %d: %w", tid, ErrGone)
	} else if err != nil {
		return nil, fmt.Errorf("watching thread %d: %w", tid, err)
	}
	if r.sched, err = fs.Open(dir + "schedstat"); err != nil {
		_, gone := r.stat.ReadAt(make([]byte, 1), 0)
		r.stat.Close()
		if gone != nil {
			return nil, fmt.Errorf("thread %d: %w", tid, ErrGone)
		}
		return nil, fmt.Errorf("watching thread %d (schedstat needs a kernel with CONFIG_SCHED_INFO): %w", tid, err)
	}
	r.syscall = openOptional(fs, dir+"syscall")
	r.wchan = openOptional(fs, dir+"wchan")
	if groups.freezer.known() && groups.freezer.version == 1 {
		r.freezerV1, r.freezerPath = openOptional(fs, path.Join(groups.freezer.dir(), "freezer.state")),
			groups.freezer.path
	}
	if groups.unified.known() {
		r.eventsV2, r.eventsPath = openOptional(fs, path.Join(groups.unified.dir(), "cgroup.events")),
			groups.unified.path
	}
	r.setLevels(openLevels(fs, groups.cpu))
	return r, nil
}

func openOptional(fs FS, name string) hostfs.File {
	f, err := fs.Open(name)
	if err != nil {
		return nil
	}
	return f
}

func openLevels(fs FS, c cgroup) *throttleLevels {
	l := &throttleLevels{}
	for _, limit := range cpuLimits(fs, c) {
		if f := openOptional(fs, path.Join(c.mount, limit.Path, "cpu.stat")); f != nil && len(l.files) < maxLevels {
			l.limits, l.files = append(l.limits, limit), append(l.files, f)
		}
	}
	return l
}

// limit is the quota of a level, none where it is not known.
func (l *throttleLevels) limit(path string) cpuLimit {
	if l != nil {
		for _, limit := range l.limits {
			if limit.Path == path {
				return limit
			}
		}
	}
	return cpuLimit{}
}

// setLevels takes new levels; the reader closes the old ones with its next reading.
func (r *threadReader) setLevels(l *throttleLevels) { r.levels.Store(l) }

// Close closes all files.
func (r *threadReader) Close() {
	for _, f := range []hostfs.File{r.stat, r.sched, r.syscall, r.wchan, r.freezerV1, r.eventsV2} {
		if f != nil {
			f.Close()
		}
	}
	last := r.levels.Load()
	if last != r.current {
		last.close()
	}
	r.current.close()
}

func (l *throttleLevels) close() {
	if l == nil {
		return
	}
	for _, f := range l.files {
		f.Close()
	}
}

// pread reads a file from its beginning into the buffer of the reader.
func (r *threadReader) pread(f hostfs.File) ([]byte, bool) {
	r.reads.Add(1)
	n, err := f.ReadAt(r.buf[:], 0)
	return r.buf[:n], n > 0 && (err == nil || n < len(r.buf))
}

// preadPromptly is pread for the two files of a thread that are read each time.
func (r *threadReader) preadPromptly(f hostfs.File) ([]byte, bool) {
	prompt, ok := f.(hostfs.Prompt)
	if !ok {
		return r.pread(f)
	}
	r.reads.Add(1)
	n, err := prompt.ReadPromptly(r.buf[:])
	return r.buf[:n], n > 0 && err == nil
}

// read fills a reading except for its time. It is false when the thread is gone. cpu.stat is read last: a throttled
// period that ended before the thread ran again is in it when the run is in schedstat.
func (r *threadReader) read(t *reading) bool {
	*t = reading{}
	b, ok := r.preadPromptly(r.stat)
	if !ok {
		return false
	}
	stat, ok := parseStat(b)
	if !ok {
		return false
	}
	t.state, t.cpu = stat.state, stat.cpu
	if b, ok = r.preadPromptly(r.sched); !ok {
		return false
	}
	if t.schedstat, ok = parseSchedstat(b); !ok {
		return false
	}
	r.readLevels(t)
	r.readStop(t)
	r.last = t.schedstat
	return true
}

func (r *threadReader) readLevels(t *reading) {
	t.levels = r.levels.Load()
	if t.levels != r.current {
		r.current.close()
		r.current = t.levels
	}
	for i, f := range t.levels.files {
		if b, ok := r.pread(f); ok {
			s, _ := parseCPUStat(b)
			t.throttledNs[i] = s.throttledNs
		}
	}
}

// readStop finds out why a thread does not run, where its state is one of a frozen or blocked thread.
func (r *threadReader) readStop(t *reading) {
	switch t.state {
	case 'T', 't':
		t.frozenBy = "-"
	case 'D':
		if r.freezerV1 != nil {
			if b, ok := r.pread(r.freezerV1); ok && bytes.HasPrefix(b, []byte("FR")) { // FROZEN, FREEZING
				t.frozenBy = r.freezerPath
				return
			}
		}
		r.readBlocked(t)
	case 'S':
		// A thread that cgroup v2 froze sleeps in do_freezer_trap; one that was not given a CPU since the last reading
		// may be that.
		if r.eventsV2 != nil && t.arrivals == r.last.arrivals {
			if b, ok := r.pread(r.eventsV2); ok && bytes.Contains(b, []byte("frozen 1")) {
				t.frozenBy = r.eventsPath
				return
			}
		}
		if t.arrivals == r.last.arrivals {
			r.readSleep(t)
		}
	}
}

// readSleep finds out, once for each sleep, whether the thread waits for something else than work.
func (r *threadReader) readSleep(t *reading) {
	if r.syscall == nil {
		return
	}
	if r.sleep.arrivals != t.arrivals {
		b, _ := r.pread(r.syscall)
		name, args := syscallOf(b)
		r.sleep = sleepReading{arrivals: t.arrivals, syscall: name}
		if hostfs.TakesDescriptor(name) && args[0] <= math.MaxInt32 {
			r.sleep.Descriptor = hostfs.DescriptorOf(r.fs, r.pid, int(args[0]))
		}
	}
	if !idleSyscalls[r.sleep.syscall] {
		t.heldUp, t.syscall, t.Descriptor = true, r.sleep.syscall, r.sleep.Descriptor
	}
}

func (r *threadReader) readBlocked(t *reading) {
	if r.syscall != nil {
		if b, ok := r.pread(r.syscall); ok {
			t.syscall, _ = syscallOf(b)
		}
	}
	if r.wchan != nil {
		if b, ok := r.pread(r.wchan); ok && !(len(b) == 1 && b[0] == '0') {
			t.wchan = r.name(bytes.TrimSpace(b))
		}
	}
}

func (r *threadReader) name(b []byte) string {
	if s, ok := r.names[string(b)]; ok {
		return s
	}
	if len(r.names) > 1000 {
		clear(r.names)
	}
	s := string(b)
	r.names[s] = s
	return s
}
