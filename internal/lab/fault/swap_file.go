package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fleet"
)

// swapLeavesFree is how much of the disk a swap file must leave free.
const swapLeavesFree = 3 << 30

// SwapFile makes a swap file and gives it to the kernel, for the whole machine, until the lab ends.
func SwapFile(ctx context.Context, l Lab, bytes int64) error {
	if err := needRoot("a swap file"); err != nil {
		return err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("slowpath-swap-%d", os.Getpid()))
	file := filepath.Join(dir, "swap")
	for _, e := range []fleet.Entry{{Kind: fleet.KindDir, Path: dir}, {Kind: fleet.KindSwap, Path: file}} {
		if err := l.Register(e); err != nil {
			return err
		}
	}
	if err := allocate(dir, file, bytes); err != nil {
		return fmt.Errorf("%w: a swap file of %d MB in %s: %w", ErrCannot, bytes>>20, os.TempDir(), err)
	}
	if err := run(ctx, "", "mkswap", file); err != nil {
		return err
	}
	return run(ctx, "", "swapon", file)
}

// allocate makes a file without holes, which swapon(8) needs.
func allocate(dir, file string, bytes int64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < bytes+swapLeavesFree {
		return fmt.Errorf("only %d MB are free", free>>20)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), 0, 0, bytes)
}
