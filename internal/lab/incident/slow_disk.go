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
}

const (
	diskBytes  = 512 << 20
	blkioMount = "/sys/fs/cgroup/blkio"
)

// SlowDisk makes a file system whose cgroup may write bytesPerSecond to it. The limit is that of cgroup v1, which counts an fsync to who
// calls it.
func (l *Lab) SlowDisk(ctx context.Context, bytesPerSecond int) (*slowDisk, error) {
	if err := needRoot("a throttled disk"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(blkioMount, "blkio.throttle.write_bps_device")); err != nil {
		return nil, fmt.Errorf("%w: a throttled disk needs the blkio controller of cgroup v1 at %s", ErrCannot, blkioMount)
	}
	base := filepath.Join(os.TempDir(), fmt.Sprintf("slowpath-disk-%d", os.Getpid()))
	d := &slowDisk{Mount: filepath.Join(base, "mnt"), dir: filepath.Join(blkioMount, filepath.Base(base))}
	image := filepath.Join(base, "disk.img")
	for _, e := range []fleet.Entry{{Kind: fleet.KindDir, Path: base}, {Kind: fleet.KindLoop, Path: image}, {Kind: fleet.KindMount, Path: d.Mount},
		{Kind: fleet.KindCgroup, Paths: []string{d.dir}}} {
		added, err := l.Registry.Add(e)
		if err != nil {
			return nil, err
		}
		l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, added) })
	}
	if err := d.make(ctx, base, image); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return d, os.WriteFile(filepath.Join(d.dir, "blkio.throttle.write_bps_device"), []byte(fmt.Sprintf("%s %d", d.dev, bytesPerSecond)), 0o644)
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
	if _, err := host.Run(ctx, "mkfs.ext4", "-q", "-F", image); err != nil {
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
	_, err = host.Run(ctx, "mount", device, d.Mount)
	return err
}

// Spec is a server that keeps its append-only file on the disk.
func (d *slowDisk) Spec(config ...string) fleet.Spec {
	return fleet.Spec{AOF: true, CgroupProcs: []string{filepath.Join(d.dir, "cgroup.procs")},
		Config: append([]string{"dir " + d.Mount, "auto-aof-rewrite-percentage 0"}, config...)}
}

// Release lifts the limit, so that the server can end: it waits for the disk in a sleep that no signal ends.
func (d *slowDisk) Release() error {
	return os.WriteFile(filepath.Join(d.dir, "blkio.throttle.write_bps_device"), []byte(d.dev+" 0"), 0o644)
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
