package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clean removes the thing of one entry. After a reboot only directories can be left.
func (r *Registry) clean(ctx context.Context, e Entry) error {
	if err := e.check(r.host.Cgroup); err != nil {
		return err
	}
	if e.Kind == KindDir {
		return r.host.removeDir(e.Path)
	}
	if !r.current(e) {
		return nil
	}
	switch e.Kind {
	case KindProcess:
		return r.cleanProcess(ctx, e)
	case KindCgroup:
		return r.host.removeCgroups(ctx, e.Paths)
	case KindNft:
		family, table, _ := strings.Cut(e.Name, " ")
		return r.host.runUnless(ctx, "No such file or directory", "nft", "delete", "table", family, table)
	case KindNetNS:
		return r.host.runUnless(ctx, "No such file or directory", "ip", "netns", "del", e.Name)
	case KindMount:
		return r.host.unmount(ctx, e.Path)
	case KindSwap:
		return r.host.swapOff(ctx, e.Path)
	case KindLoop:
		return r.host.detach(ctx, e.Path)
	default:
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
}

func (r *Registry) cleanProcess(ctx context.Context, e Entry) error {
	if e.Process.PID != 0 {
		return r.host.end(ctx, e.Process)
	}
	var errs []error
	for _, p := range r.host.inDirectory(e.Path) {
		errs = append(errs, r.host.end(ctx, p))
	}
	return errors.Join(errs...)
}

// runUnless runs a command. An output that says that the thing is gone counts as success.
func (h Host) runUnless(ctx context.Context, gone string, argv ...string) error {
	out, err := h.Run(ctx, argv...)
	if err != nil && strings.Contains(out, gone) {
		return nil
	}
	return err
}

// unmount removes all mounts on a mount point, lazily, since a process may still use them.
func (h Host) unmount(ctx context.Context, path string) error {
	mounts, err := h.mountPoints()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m == path {
			if _, err := h.Run(ctx, "umount", "-l", path); err != nil {
				return err
			}
		}
	}
	return nil
}

// detach detaches the loop devices of a file, but not a device that has another file now.
func (h Host) detach(ctx context.Context, file string) error {
	for _, device := range h.loopsOf(file) {
		if _, err := h.Run(ctx, "losetup", "-d", device); err != nil {
			return err
		}
	}
	return nil
}

// swapOff stops the use of a swap file. /proc/swaps escapes blanks in paths, which the lab's paths do not have.
func (h Host) swapOff(ctx context.Context, file string) error {
	body, err := os.ReadFile(filepath.Join(h.Proc, "swaps"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without swap has no such file
		return fmt.Errorf("reading the swap files: %w", err)
	}
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == file {
			_, err := h.Run(ctx, "swapoff", file)
			return err
		}
	}
	return nil
}

// removeDir removes a directory of the lab, unless something is still mounted in it.
func (h Host) removeDir(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	mounts, err := h.mountPoints()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m == path || strings.HasPrefix(m, path+string(filepath.Separator)) {
			return fmt.Errorf("%s is still mounted; umount it first", m)
		}
	}
	return os.RemoveAll(path)
}
