package incident

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	swapBytes   = 1 << 30
	swapMemory  = 256 << 20 // that the server may have
	swapKeys    = 160_000
	swapValue   = 4 << 10 // a page each, about 750 MB in all
	swapMinFree = 4 << 30 // of disk, before a swap file is made
)

// swapIncident lets a server of 750 MB have 256 MB of memory; the kernel moves the rest to a swap file. Of three keys
// that are read two have to be fetched from it first, in the main thread, and other pages must go for them.
var swapIncident = Incident{
	ID:    "swap",
	Cause: "swap",
	Title: "a server of 750 MB with 256 MB of memory, and swap on a file",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if err := l.swapFile(ctx); err != nil {
			return Scene{}, err
		}
		procs, err := l.memoryLimit(swapMemory)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{CgroupProcs: []string{procs}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillValues(ctx, s, swapKeys, swapValue); err != nil {
			return Scene{}, err
		}
		single, multi := l.timings("GETs of random keys"), l.timings("MGETs of 50 random keys")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 200, Took: single.add, Command: randomKeys("GET", 1)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 50, Took: multi.add, Command: randomKeys("MGET", 50)})
		return Scene{Target: s.Addr}, nil
	},
}

// randomKeys reads n keys of the server.
func randomKeys(command string, n int) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, _ int) []string {
		args := []string{command}
		for range n {
			args = append(args, "fill:"+itoa(r.IntN(swapKeys)))
		}
		return args
	}
}

// fillValues makes n keys fill:0 … with values of a size in bytes.
func fillValues(ctx context.Context, s *fleet.Instance, n, bytes int) error {
	const script = "local v=string.rep('0123456789abcdef',ARGV[3]/16) for i=ARGV[1],ARGV[2] do " +
		"redis.call('SET','fill:'..i,v) end"
	return steps(ctx, s, script, n, itoa(bytes))
}

// swapFile puts a new swap file to use, for the whole machine, until the lab ends.
func (l *Lab) swapFile(ctx context.Context) error {
	if err := needRoot("a swap file"); err != nil {
		return err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("slowpath-swap-%d", os.Getpid()))
	file := filepath.Join(dir, "swap")
	for _, e := range []fleet.Entry{{Kind: fleet.KindDir, Path: dir}, {Kind: fleet.KindSwap, Path: file}} {
		added, err := l.Registry.Add(e)
		if err != nil {
			return err
		}
		l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, added) })
	}
	if err := allocate(dir, file); err != nil {
		return fmt.Errorf("%w: a swap file of %d MB in %s: %w", ErrCannot, swapBytes>>20, os.TempDir(), err)
	}
	if err := run(ctx, "", "mkswap", file); err != nil {
		return err
	}
	return run(ctx, "", "swapon", file)
}

// allocate makes a file without holes, as swapon(8) wants it.
func allocate(dir, file string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < swapMinFree {
		return fmt.Errorf("only %d MB are free", free>>20)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), 0, 0, swapBytes)
}

// memoryLimit makes a cgroup that may have so much memory and as much swap as there is; it returns the file that a
// process joins it by.
func (l *Lab) memoryLimit(bytes int) (procs string, err error) {
	dir, v2, err := l.cgroup("memory", "memory", "memory.limit_in_bytes")
	if err != nil {
		return "", err
	}
	file := "memory.limit_in_bytes"
	if v2 {
		file = "memory.max"
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(itoa(bytes)), 0o644); err != nil {
		return "", fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return filepath.Join(dir, "cgroup.procs"), nil
}
