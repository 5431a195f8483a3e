package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"
)

const maxThreads = 256 // that are read per process

// proc is a file of the watched process.
func (w *watch) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", w.Process.PID, name) }

func (w *watch) read(name string) ([]byte, bool) {
	w.reads.Add(1)
	b, err := w.FS.ReadFile(name)
	return b, err == nil
}

// mainThread samples the counters of the thread that runs the event loop.
func (w *watch) mainThread() {
	task := w.proc(fmt.Sprintf("task/%d/", w.loopTID))
	if b, ok := w.read(task + "schedstat"); ok {
		if s, ok := parseSchedstat(b); ok {
			w.sample(series.MainRun, float64(s.runNs))
			w.stalled, w.mainRunNs = s.runNs == w.mainRunNs, s.runNs
			w.sample(series.MainDelay, float64(s.delayNs))
		}
	}
	if b, ok := w.read(task + "stat"); ok {
		if s, ok := parseStat(b); ok {
			w.mainCPU = s.cpu
			w.sample(series.MainCPU, float64(s.cpu))
			w.sample(series.MainMinorFaults, float64(s.minflt))
			w.sample(series.MainMajorFaults, float64(s.majflt))
			if s.blkioDelay > 0 {
				w.sample(series.MainBlkioDelay, float64(s.blkioDelay*clockTickNs))
			}
		}
	}
	if b, ok := w.read(task + "status"); ok {
		w.sampleText(series.MainVoluntarySwitches, w.Node, hostfs.StatusField(b, "voluntary_ctxt_switches"))
		w.sampleText(series.MainInvoluntarySwitches, w.Node, hostfs.StatusField(b, "nonvoluntary_ctxt_switches"))
		w.allowed = parseCPUSet(hostfs.StatusField(b, "Cpus_allowed_list"))
		w.sample(series.CPUsAllowed, float64(len(w.allowed)))
	}
}

// sampleText records the number in a text; text that is no number is left out.
func (w *watch) sampleText(of series.Name, which, text string) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		w.sampleOf(of, which, v)
	}
}

// process samples the counters of all threads together.
func (w *watch) process() {
	if b, ok := w.read(w.proc("stat")); ok {
		if s, ok := parseStat(b); ok {
			w.sample(series.ProcessCPU, float64((s.utime+s.stime)*clockTickNs))
			w.sample(series.ProcessThreads, float64(s.threads))
			w.sample(series.ProcessMinorFaults, float64(s.minflt))
			w.sample(series.ProcessMajorFaults, float64(s.majflt))
			w.rssBytes = s.rssPages * int64(os.Getpagesize())
			w.sample(series.ProcessRSS, float64(w.rssBytes))
		}
	}
	if b, ok := w.read(w.proc("status")); ok {
		if kb, err := strconv.ParseFloat(firstField(hostfs.StatusField(b, "VmSwap")), 64); err == nil {
			w.sample(series.ProcessSwap, kb*1024)
		}
	}
	p, err := w.procfs()
	if err != nil {
		return
	}
	w.reads.Add(2)
	if io, err := p.IO(); err == nil {
		w.sample(series.IORead, float64(io.ReadBytes))
		w.sample(series.IOWritten, float64(io.WriteBytes))
		w.sample(series.IOCancelled, float64(io.CancelledWriteBytes))
	} else if denied(err) {
		w.blind("bytes that the server reads and writes", err.Error(), "run as root or with CAP_SYS_PTRACE")
	}
	w.countFDs()
}

func (w *watch) procfs() (procfs.Proc, error) {
	fs, err := procfs.NewFS(w.FS.Path("/proc"))
	if err != nil {
		return procfs.Proc{}, err
	}
	return fs.Proc(w.Process.PID)
}

// countFDs counts open descriptors: since Linux 6.2 (f1f1f2569901) the size of the directory is their number. On older
// kernels it is listed, which costs about 0.3 µs each.
func (w *watch) countFDs() {
	w.reads.Add(1)
	info, err := w.FS.Stat(w.proc("fd"))
	if err == nil && info.Size() > 0 {
		w.sample(series.FDs, float64(info.Size()))
		return
	}
	w.fds.run(w, func() {
		names, err := w.FS.ReadDir(w.proc("fd"))
		switch {
		case err == nil:
			w.sample(series.FDs, float64(len(names)))
		case denied(err):
			w.blind("open descriptors of the server", err.Error(), "run as root or with CAP_SYS_PTRACE")
		}
	})
}

// Reading smaps_rollup walks all page tables of the server and holds its mmap_lock for reading meanwhile.
const (
	maxSmapsRSS  = 2 << 30
	cheapSmapsNs = 5_000_000
)

// hugePages samples transparent huge pages where reading them is cheap for the server.
func (w *watch) hugePages() {
	if w.rssBytes > maxSmapsRSS && (w.smapsNs == 0 || w.smapsNs > cheapSmapsNs) {
		w.blind("huge pages of the server", fmt.Sprintf("smaps_rollup is not read for a process of %d MB: it would "+
			"hold the server's mmap lock", w.rssBytes>>20), "")
		return
	}
	begin := w.Clock.Now()
	text, ok := w.read(w.proc("smaps_rollup"))
	w.smapsNs = w.Clock.Now() - begin
	if !ok {
		return
	}
	for _, f := range []struct {
		field string
		of    series.Name
	}{
		{"AnonHugePages", series.ProcessAnonHuge},
		{"Swap", series.ProcessSmapsSwap},
		{"Anonymous", series.ProcessAnon},
	} {
		if kb, err := strconv.ParseFloat(firstField(hostfs.StatusField(text, f.field)), 64); err == nil {
			w.sample(f.of, kb*1024)
		}
	}
}

// threadSum is what the threads of one name used.
type threadSum struct {
	run, delay int64
}

// threads samples the CPU time of the threads other than the main one, by name: bio_close_file, io_thd_1,
// jemalloc_bg_thd.
func (w *watch) threads() {
	names, err := w.FS.ReadDir(w.proc("task"))
	if err != nil {
		return
	}
	sums := map[string]threadSum{}
	for i, tid := range names {
		if tid == strconv.Itoa(w.loopTID) || i > maxThreads {
			continue
		}
		b, ok := w.read(w.proc("task/" + tid + "/schedstat"))
		if !ok {
			continue
		}
		s, _ := parseSchedstat(b)
		comm := readLine(w.FS, w.proc("task/"+tid+"/comm"))
		sum := sums[comm]
		sums[comm] = threadSum{sum.run + s.runNs, sum.delay + s.delayNs}
	}
	for comm, s := range sums {
		w.sample(series.ThreadRun(comm), float64(s.run))
		w.sample(series.ThreadDelay(comm), float64(s.delay))
	}
}

func (w *watch) snapshot(subject, name string, v any) {
	body, ok := v.(string)
	if !ok {
		body = recording.Detail(v)
	}
	w.Sink.Snapshot(recording.Snapshot{
		TimeNs: w.Clock.Now(), Source: recording.SourceHost, Subject: subject,
		Name: name, Body: body,
	})
}

// processSnapshot says who the server's process is.
func (w *watch) processSnapshot() {
	p := w.Process
	w.snapshot(w.Node, "process", map[string]any{
		"pid": p.PID, "ns_pid": p.NSPID, "comm": p.Comm, "loop_tid": w.loopTID,
		"exe":     filepath.Base(p.Exe),
		"own_net": p.OwnNet, "foreign": p.Foreign, "cgroup": strings.TrimSpace(w.groups.raw),
	})
}
