package incident

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slowpath/internal/lab/fleet"
)

// cpuCgroup is a new CPU cgroup: version 1 or 2, whichever of this host has the cpu controller.
type cpuCgroup struct {
	Dir string
	v2  bool
}

// CPUCgroup makes an empty CPU cgroup that ends with the lab.
func (l *Lab) CPUCgroup(ctx context.Context, name string) (*cpuCgroup, error) {
	dir, v2, err := l.cgroup(name, "cpu", "cpu.cfs_quota_us")
	return &cpuCgroup{Dir: dir, v2: v2}, err
}

// cgroup makes an empty cgroup of a controller that ends with the lab; v1File is a file that the controller has in
// version 1.
func (l *Lab) cgroup(name, controller, v1File string) (dir string, v2 bool, err error) {
	if err := needRoot("a cgroup"); err != nil {
		return "", false, err
	}
	const root = "/sys/fs/cgroup"
	dir = filepath.Join(root, controller, fmt.Sprintf("slowpath-lab-%s-%d", name, os.Getpid()))
	if _, err := os.Stat(filepath.Join(root, controller, v1File)); err != nil {
		controllers, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
		if !hasWord(string(controllers), controller) {
			return "", false, fmt.Errorf("%w: neither cgroup v1 nor v2 offers a writable %s controller", ErrCannot,
				controller)
		}
		dir, v2 = filepath.Join(root, filepath.Base(dir)), true
	}
	e, err := l.Registry.Add(fleet.Entry{Kind: fleet.KindCgroup, Paths: []string{dir}})
	if err != nil {
		return "", false, err
	}
	l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, e) })
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return dir, v2, nil
}

// Procs is the file that a process joins the cgroup by.
func (g *cpuCgroup) Procs() string { return filepath.Join(g.Dir, "cgroup.procs") }

// Quota limits the cgroup to quotaUs of CPU time in each period of periodUs microseconds.
func (g *cpuCgroup) Quota(quotaUs, periodUs int) error {
	if g.v2 {
		return g.write("cpu.max", fmt.Sprintf("%d %d", quotaUs, periodUs))
	}
	if err := g.write("cpu.cfs_period_us", strconv.Itoa(periodUs)); err != nil {
		return err
	}
	return g.write("cpu.cfs_quota_us", strconv.Itoa(quotaUs))
}

func (g *cpuCgroup) write(file, value string) error {
	if err := os.WriteFile(filepath.Join(g.Dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return nil
}

func hasWord(text, word string) bool {
	for f := range strings.FieldsSeq(text) {
		if f == word {
			return true
		}
	}
	return false
}
