package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// limits lists, for both versions of cgroups, the files that freeze or limit processes, and the value that ends that
// (kernel Documentation/admin-guide/cgroup-v1/*.rst and cgroup-v2.rst).
var limits = []struct{ file, value string }{
	{"freezer.state", "THAWED"},
	{"cgroup.freeze", "0"},
	{"cpu.cfs_quota_us", "-1"},
	{"cpu.max", "max"},
}

// deviceLimits lists files with one line per device, and the value to write after its number.
var deviceLimits = []struct{ file, value string }{
	{"blkio.throttle.read_bps_device", "0"},
	{"blkio.throttle.write_bps_device", "0"},
	{"blkio.throttle.read_iops_device", "0"},
	{"blkio.throttle.write_iops_device", "0"},
	{"io.max", "rbps=max wbps=max riops=max wiops=max"},
}

// unlimit lifts the limits of cgroups, so that their processes can end: not even SIGKILL ends a frozen process (version
// 1), and a throttled one may take seconds. It ignores errors: they show when the cgroup is removed.
func (h Host) unlimit(dirs []string) {
	for _, top := range dirs {
		for _, dir := range cgroupTree(top) {
			for _, r := range limits {
				h.rewrite(filepath.Join(dir, r.file), r.value)
			}
			for _, r := range deviceLimits {
				body, _ := os.ReadFile(filepath.Join(dir, r.file))
				for line := range strings.Lines(string(body)) {
					if f := strings.Fields(line); len(f) > 0 {
						h.rewrite(filepath.Join(dir, r.file), f[0]+" "+r.value)
					}
				}
			}
		}
	}
}

// rewrite writes to a file that exists; the files of cgroups are never created by writing.
func (h Host) rewrite(path, value string) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(value) // see unlimit
}

// cgroupTree lists dir and the cgroups below, the deepest first.
func cgroupTree(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, path)
		}
		return nil // what was removed meanwhile is no error
	})
	slices.Reverse(out)
	return out
}

const cgroupPoll = 10 * time.Millisecond

// removeCgroups kills the processes that are left in the cgroups and removes them. It moves this process and kernel
// threads to the parent instead.
func (h Host) removeCgroups(ctx context.Context, dirs []string) error {
	h.unlimit(dirs)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killGrace)
	defer cancel()
	var errs []error
	for _, top := range dirs {
		for _, dir := range cgroupTree(top) {
			var last error
			err := poll(ctx, cgroupPoll, func() (bool, error) {
				if err := h.emptyCgroup(ctx, dir); err != nil {
					return false, err
				}
				last = os.Remove(dir)
				return last == nil || errors.Is(last, os.ErrNotExist), nil
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("removing cgroup %s: %w", dir, errors.Join(err, last)))
			}
		}
	}
	return errors.Join(errs...)
}

func (h Host) emptyCgroup(ctx context.Context, dir string) error {
	var found []Process
	for _, pid := range cgroupPIDs(dir) {
		if pid == os.Getpid() || h.isKernelThread(pid) {
			h.rewrite(filepath.Join(filepath.Dir(dir), "cgroup.procs"), strconv.Itoa(pid))
			continue
		}
		if p, err := h.process(pid); err == nil {
			found = append(found, p)
		}
	}
	still := cgroupPIDs(dir) // a pid that is listed before and after is that of the process that was identified
	for _, p := range found {
		if !slices.Contains(still, p.PID) {
			continue
		}
		if err := h.kill(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// isKernelThread reports whether a pid is that of a kernel thread, which no signal ends. The lab puts the thread of a
// journal into a cgroup to limit it. A kernel thread has no program, and its command line is empty; that of a zombie is
// empty too, but a zombie is in no cgroup.
func (h Host) isKernelThread(pid int) bool {
	body, err := os.ReadFile(filepath.Join(h.Proc, strconv.Itoa(pid), "cmdline"))
	_, noProgram := os.Readlink(filepath.Join(h.Proc, strconv.Itoa(pid), "exe"))
	return err == nil && len(body) == 0 && noProgram != nil
}

// cgroupPIDs reads cgroup.procs; a cgroup that is gone has none.
func cgroupPIDs(dir string) []int {
	body, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for field := range strings.FieldsSeq(string(body)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
