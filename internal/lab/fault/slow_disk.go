package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/fleet"
)

// SlowDisk is a file system on a loop device. A cgroup limits how fast its processes write to the device.
type SlowDisk struct {
	Mount  string // where the file system is mounted
	cgroup string // directory of the blkio controller
	device string // MAJOR:MINOR
}

const (
	diskBytes  = 512 << 20
	blkioMount = "/sys/fs/cgroup/blkio"
	throttle   = "blkio.throttle.write_bps_device"
)

// NewSlowDisk makes a file system to which the processes of its cgroup may write bytesPerSecond. The limit is that of
// cgroup v1: an fsync counts for the process that calls it, and the journal for the kernel thread that writes it, so
// that thread is in the cgroup too. All data goes through a journal of 4 MB. When it is full write() waits, as on any
// disk that is too slow.
func NewSlowDisk(ctx context.Context, l Lab, bytesPerSecond int) (*SlowDisk, error) {
	if err := needRoot("a throttled disk"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(blkioMount, throttle)); err != nil {
		return nil, fmt.Errorf("%w: a throttled disk needs the blkio controller of cgroup v1 at %s", ErrCannot,
			blkioMount)
	}
	tmp, err := fleet.TempDir()
	if err != nil {
		return nil, err
	}
	base := filepath.Join(tmp, fmt.Sprintf("slowpath-disk-%d", os.Getpid()))
	d := &SlowDisk{Mount: filepath.Join(base, "mnt"), cgroup: filepath.Join(blkioMount, filepath.Base(base))}
	image := filepath.Join(base, "disk.img")
	for _, e := range []fleet.Entry{
		{Kind: fleet.KindDir, Path: base},
		{Kind: fleet.KindLoop, Path: image},
		{Kind: fleet.KindMount, Path: d.Mount},
		{Kind: fleet.KindCgroup, Paths: []string{d.cgroup}},
	} {
		if err := l.Register(e); err != nil {
			return nil, err
		}
	}
	if err := d.make(ctx, base, image); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return d, d.Limit(bytesPerSecond)
}

func (d *SlowDisk) make(ctx context.Context, base, image string) error {
	for _, dir := range []string{base, d.Mount, d.cgroup} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		return err
	}
	host := fleet.RealHost()
	if _, err := host.Run(ctx, "mkfs.ext4", "-q", "-F", "-J", "size=4", image); err != nil {
		return err
	}
	out, err := host.Run(ctx, "losetup", "--find", "--show", image)
	if err != nil {
		return err
	}
	device := strings.TrimSpace(out)
	number, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "dev"))
	if err != nil {
		return err
	}
	d.device = strings.TrimSpace(string(number))
	if _, err = host.Run(ctx, "mount", "-o", "data=journal", device, d.Mount); err != nil {
		return err
	}
	if err := fleet.HandOver(d.Mount); err != nil {
		return err
	}
	return d.addThread("jbd2/" + filepath.Base(device) + "-8")
}

// addThread puts the kernel thread of the journal into the cgroup.
func (d *SlowDisk) addThread(name string) error {
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, f := range comms {
		if comm, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(comm)) == name {
			return os.WriteFile(d.Procs(), []byte(filepath.Base(filepath.Dir(f))), 0o644)
		}
	}
	return fmt.Errorf("no kernel thread %s", name)
}

// Procs is the file by which a process joins the cgroup.
func (d *SlowDisk) Procs() string { return filepath.Join(d.cgroup, "cgroup.procs") }

// Unlimit lifts the limit. Do so before a server ends that writes to the disk: it waits for it in a sleep that no
// signal interrupts.
func (d *SlowDisk) Unlimit() error { return d.Limit(0) }

// Limit sets the write rate; 0 means none.
func (d *SlowDisk) Limit(bytesPerSecond int) error {
	return os.WriteFile(filepath.Join(d.cgroup, throttle), fmt.Appendf(nil, "%s %d", d.device, bytesPerSecond), 0o644)
}
