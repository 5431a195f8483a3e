package host

import (
	"fmt"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
)

// clientCounters samples the memory, swap, disk I/O and descriptors of a client process. smaps_rollup of clients is not
// read: that would hold locks of processes which the user did not name.
func (w *watch) clientCounters(subject string, c *client, s *taskStat) {
	w.sample(subject, "rss_bytes", float64(s.rssPages*int64(os.Getpagesize())))
	w.sample(subject, "minflt", float64(s.minflt))
	w.sample(subject, "majflt", float64(s.majflt))
	if b, ok := w.read(fmt.Sprintf("/proc/%d/status", c.pid)); ok {
		if kb, err := strconv.ParseFloat(firstField(statusField(b, "VmSwap")), 64); err == nil {
			w.sample(subject, "swap_bytes", kb*1024)
		}
	}
	if info, err := w.FS.Stat(fmt.Sprintf("/proc/%d/fd", c.pid)); err == nil && info.Size() > 0 {
		w.sample(subject, "fd.count", float64(info.Size()))
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
		w.sample(subject, "io.read_bytes", float64(io.ReadBytes))
		w.sample(subject, "io.write_bytes", float64(io.WriteBytes))
	}
	if limits, err := p.Limits(); err == nil {
		w.sample(subject, "fd.limit", float64(limits.OpenFiles))
	}
}
