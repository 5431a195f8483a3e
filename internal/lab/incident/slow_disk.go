package incident

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/fleet"
)

// slowDisk is a file system on a loop device that its cgroup may write to only so fast: a real disk that is too slow.
type slowDisk struct {
	Mount string
	dir   string // cgroup of the blkio controller
	dev   string // MAJOR:MINOR
	jbd2  string // pid of the thread that writes the journal
}

const (
	diskBytes  = 512 << 20
	blkioMount = "/sys/fs/cgroup/blkio"
	throttle   = "blkio.throttle.write_bps_device"
)

// SlowDisk makes a file system whose cgroup may write bytesPerSecond to it. The limit is that of cgroup v1, which
// counts an fsync to who calls it, and a journal to the thread that writes it; so that thread is in the cgroup too. All
// data goes through a journal of 4 MB: where it is full, write() waits, as it does on any disk that is too slow.
func (l *Lab) SlowDisk(ctx context.Context, bytesPerSecond int) (*slowDisk, error) {
	if err := needRoot("a throttled disk"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(blkioMount, throttle)); err != nil {
		return nil, fmt.Errorf("%w: a throttled disk needs the blkio controller of cgroup v1 at %s", ErrCannot,
			blkioMount)
	}
	base := filepath.Join(os.TempDir(), fmt.Sprintf("slowpath-disk-%d", os.Getpid()))
	d := &slowDisk{Mount: filepath.Join(base, "mnt"), dir: filepath.Join(blkioMount, filepath.Base(base))}
	image := filepath.Join(base, "disk.img")
	for _, e := range []fleet.Entry{
		{Kind: fleet.KindDir, Path: base},
		{Kind: fleet.KindLoop, Path: image},
		{Kind: fleet.KindMount, Path: d.Mount},
		{Kind: fleet.KindCgroup, Paths: []string{d.dir}},
	} {
		added, err := l.Registry.Add(e)
		if err != nil {
			return nil, err
		}
		l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, added) })
	}
	if err := d.make(ctx, base, image); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return d, os.WriteFile(filepath.Join(d.dir, throttle), []byte(fmt.Sprintf("%s %d", d.dev, bytesPerSecond)), 0o644)
}

func (d *slowDisk) make(ctx context.Context, base, image string) error {
	for _, dir := range []string{base, d.Mount, d.dir} {
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
	d.dev = strings.TrimSpace(string(number))
	if _, err = host.Run(ctx, "mount", "-o", "data=journal", device, d.Mount); err != nil {
		return err
	}
	return d.catchJournal("jbd2/" + filepath.Base(device) + "-8")
}

// catchJournal puts the journal's thread into the cgroup.
func (d *slowDisk) catchJournal(name string) error {
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, f := range comms {
		if comm, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(comm)) == name {
			d.jbd2 = filepath.Base(filepath.Dir(f))
			return os.WriteFile(filepath.Join(d.dir, "cgroup.procs"), []byte(d.jbd2), 0o644)
		}
	}
	return fmt.Errorf("no kernel thread %s", name)
}

// Spec is a server that keeps its append-only file on the disk.
func (d *slowDisk) Spec(config ...string) fleet.Spec {
	return fleet.Spec{
		AOF: true, CgroupProcs: []string{filepath.Join(d.dir, "cgroup.procs")},
		Config: append([]string{"dir " + d.Mount, "auto-aof-rewrite-percentage 0"}, config...),
	}
}

// Release lifts the limit, so that the server can end: it waits for the disk in a sleep that no signal ends.
func (d *slowDisk) Release() error {
	return os.WriteFile(filepath.Join(d.dir, throttle), []byte(d.dev+" 0"), 0o644)
}

// StartOn starts a server on the disk.
func (l *Lab) StartOn(ctx context.Context, d *slowDisk, config ...string) (*fleet.Instance, error) {
	s, err := l.Start(ctx, d.Spec(config...))
	if err != nil {
		return nil, err
	}
	l.Defer(func(context.Context) error { return d.Release() })
	return s, nil
}
