package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
)

// Cgroup is a control group of version 1 or 2, whichever has the controller on this host.
type Cgroup struct {
	dir  string
	acct string // that of the controller cpuacct with the same name, where it is mounted apart; else empty
	v2   bool
}

// quotaPeriod is the kernel's default period of CPU quotas.
const quotaPeriod = 100 * time.Millisecond

// CPUCgroup makes an empty cgroup whose processes may use quota of CPU time in each period of 100 ms; 0 means no limit.
func CPUCgroup(l Lab, name string, quota time.Duration) (*Cgroup, error) {
	g, err := newCgroup(l, name, "cpu", "cpu.cfs_quota_us")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(g.dir, "cpuacct.usage")); !g.v2 && err != nil {
		acct, err := newCgroup(l, name, "cpuacct", "cpuacct.usage")
		if err != nil {
			return nil, err
		}
		g.acct = acct.dir
	}
	return g, g.SetQuota(quota)
}

// SetQuota sets the CPU time of each period of 100 ms; 0 means no limit.
func (g *Cgroup) SetQuota(quota time.Duration) error {
	period, limit := strconv.FormatInt(quotaPeriod.Microseconds(), 10), strconv.FormatInt(quota.Microseconds(), 10)
	if g.v2 {
		if quota == 0 {
			limit = "max"
		}
		return g.write("cpu.max", limit+" "+period)
	}
	if quota == 0 {
		limit = "-1"
	}
	if err := g.write("cpu.cfs_period_us", period); err != nil {
		return err
	}
	return g.write("cpu.cfs_quota_us", limit)
}

// MemoryCgroup makes an empty cgroup with a limit of memory, and none of swap.
func MemoryCgroup(l Lab, limitBytes int) (*Cgroup, error) {
	g, err := newCgroup(l, "memory", "memory", "memory.limit_in_bytes")
	if err != nil {
		return nil, err
	}
	file := "memory.limit_in_bytes"
	if g.v2 {
		file = "memory.max"
	}
	return g, g.write(file, strconv.Itoa(limitBytes))
}

// newCgroup makes an empty cgroup of a controller. v1File is a file that the controller has in version 1.
func newCgroup(l Lab, name, controller, v1File string) (*Cgroup, error) {
	if err := needRoot("a cgroup"); err != nil {
		return nil, err
	}
	const root = "/sys/fs/cgroup"
	g := &Cgroup{dir: filepath.Join(root, controller, fmt.Sprintf("slowpath-lab-%s-%d", name, os.Getpid()))}
	if _, err := os.Stat(filepath.Join(root, controller, v1File)); err != nil {
		controllers, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
		if !slices.Contains(strings.Fields(string(controllers)), controller) {
			return nil, fmt.Errorf("%w: neither cgroup v1 nor v2 offers a writable %s controller", ErrCannot,
				controller)
		}
		g.dir, g.v2 = filepath.Join(root, filepath.Base(g.dir)), true
	}
	if err := l.Register(fleet.Entry{Kind: fleet.KindCgroup, Paths: []string{g.dir}}); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return g, nil
}

// Procs is the file by which a process joins the cgroup: it writes its pid there.
func (g *Cgroup) Procs() string { return filepath.Join(g.dir, "cgroup.procs") }

// AllProcs is Procs, and the same of the cgroup that counts its CPU time where that is another one.
func (g *Cgroup) AllProcs() []string {
	if g.acct == "" {
		return []string{g.Procs()}
	}
	return []string{g.Procs(), filepath.Join(g.acct, "cgroup.procs")}
}

// Add moves a process that runs into the cgroup.
func (g *Cgroup) Add(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

func (g *Cgroup) write(file, value string) error {
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return nil
}
