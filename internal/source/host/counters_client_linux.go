package host

import (
	"fmt"
	"os"
	"strconv"

	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"

	"github.com/prometheus/procfs"
)

// clientCounters samples the memory, swap, disk I/O and descriptors of a client process. smaps_rollup of clients is not
// read: that would hold locks of processes which the user did not name.
func (w *watch) clientCounters(pid string, c *client, s *taskStat) {
	w.sampleOf(series.ClientRSS, pid, float64(s.rssPages*int64(os.Getpagesize())))
	w.sampleOf(series.ClientMinorFaults, pid, float64(s.minflt))
	w.sampleOf(series.ClientMajorFaults, pid, float64(s.majflt))
	if b, ok := w.read(fmt.Sprintf("/proc/%d/status", c.pid)); ok {
		if kb, err := strconv.ParseFloat(firstField(hostfs.StatusField(b, "VmSwap")), 64); err == nil {
			w.sampleOf(series.ClientSwap, pid, kb*1024)
		}
	}
	if info, err := w.FS.Stat(fmt.Sprintf("/proc/%d/fd", c.pid)); err == nil && info.Size() > 0 {
		w.sampleOf(series.ClientFDs, pid, float64(info.Size()))
	}
	fs, err := procfs.NewFS(w.FS.Path("/proc"))
	if err != nil {
		return
	}
	p, err := fs.Proc(c.pid)
	if err != nil {
		return
	}
	w.reads.Add(2)
	if io, err := p.IO(); err == nil {
		w.sampleOf(series.ClientIORead, pid, float64(io.ReadBytes))
		w.sampleOf(series.ClientIOWritten, pid, float64(io.WriteBytes))
	}
	if limits, err := p.Limits(); err == nil {
		w.sampleOf(series.ClientFDLimit, pid, float64(limits.OpenFiles))
	}
}
