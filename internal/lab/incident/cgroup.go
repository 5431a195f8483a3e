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
	if err := needRoot("a CPU cgroup"); err != nil {
		return nil, err
	}
	g := &cpuCgroup{Dir: filepath.Join("/sys/fs/cgroup/cpu", fmt.Sprintf("slowpath-lab-%s-%d", name, os.Getpid()))}
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err != nil {
		controllers, _ := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control")
		if !hasWord(string(controllers), "cpu") {
			return nil, fmt.Errorf("%w: neither cgroup v1 nor v2 offers a writable cpu controller", ErrCannot)
		}
		g.Dir, g.v2 = filepath.Join("/sys/fs/cgroup", filepath.Base(g.Dir)), true
	}
	e, err := l.Registry.Add(fleet.Entry{Kind: fleet.KindCgroup, Paths: []string{g.Dir}})
	if err != nil {
		return nil, err
	}
	l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, e) })
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return g, nil
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
