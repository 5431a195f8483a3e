package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// clean removes the thing of one entry. After a reboot only directories are left; the rest lived in the kernel.
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

// runUnless runs a command and takes an output that says the thing is gone for success.
func (h Host) runUnless(ctx context.Context, gone string, argv ...string) error {
	out, err := h.Run(ctx, argv...)
	if err != nil && strings.Contains(out, gone) {
		return nil
	}
	return err
}

// unmount removes all that is stacked on the mount point; lazily, because a process may still hold it.
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

// detach detaches every loop device on the file, so a device that serves another file by now is left alone.
func (h Host) detach(ctx context.Context, file string) error {
	for _, device := range h.loopsOf(file) {
		if _, err := h.Run(ctx, "losetup", "-d", device); err != nil {
			return err
		}
	}
	return nil
}

// swapOff takes a swap file out of use. /proc/swaps writes a blank in its path as \040, which
// no path of the lab has.
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
	if i := slices.IndexFunc(mounts, func(m string) bool {
		return m == path || strings.HasPrefix(m,
			path+string(filepath.Separator))
	}); i >= 0 {
		return fmt.Errorf("%s is still mounted; umount it first", mounts[i])
	}
	return os.RemoveAll(path)
}
