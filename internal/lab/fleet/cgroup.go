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

// release lists, for both versions of cgroups, the files that hold a process back and what to write to let it go
// (kernel Documentation/admin-guide/cgroup-v1/*.rst and cgroup-v2.rst).
var release = []struct{ file, value string }{
	{"freezer.state", "THAWED"},
	{"cgroup.freeze", "0"},
	{"cpu.cfs_quota_us", "-1"},
	{"cpu.max", "max"},
}

// releaseDevices lists files with one line per device, and what to write after its number.
var releaseDevices = []struct{ file, value string }{
	{"blkio.throttle.read_bps_device", "0"},
	{"blkio.throttle.write_bps_device", "0"},
	{"blkio.throttle.read_iops_device", "0"},
	{"blkio.throttle.write_iops_device", "0"},
	{"io.max", "rbps=max wbps=max riops=max wiops=max"},
}

// relax lets go the processes of the cgroups, so that they can be ended: a frozen one does not even die of SIGKILL
// (version 1), a throttled one may take seconds. It does what it can; what it cannot shows when the cgroup is removed.
func (h Host) relax(dirs []string) {
	for _, top := range dirs {
		for _, dir := range cgroupTree(top) {
			for _, r := range release {
				h.rewrite(filepath.Join(dir, r.file), r.value)
			}
			for _, r := range releaseDevices {
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
	_, _ = f.WriteString(value) // see relax
}

// cgroupTree lists dir and the cgroups below, the deepest first.
func cgroupTree(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, path)
		}
		return nil // what vanishes meanwhile need not be removed
	})
	slices.Reverse(out)
	return out
}

const cgroupPoll = 10 * time.Millisecond

// removeCgroups kills what is left in the cgroups and removes them. This process itself and the
// kernel's threads are moved to the parent instead.
func (h Host) removeCgroups(ctx context.Context, dirs []string) error {
	h.relax(dirs)
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
	still := cgroupPIDs(dir) // who is listed before and after was identified rightly
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

// isKernelThread tells the kernel's threads, which no signal ends: a journal's, put there so that the limit of a disk
// holds for it too. They run no program, so that their command line is empty; a zombie's is as well, but it is in no
// cgroup any more.
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
