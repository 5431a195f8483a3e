// Package toolchain builds programs of other languages, whose sources are embedded in this one, with the compilers and
// package managers of this host, into a cache. Their versions are pinned by files next to the sources.
package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/lab/servers"
)

// Reasons outside of this program why a program is not available. They are the same as those of servers.
var (
	ErrTool     = servers.ErrTool
	ErrRegistry = servers.ErrRegistry
)

// Toolchain builds the programs of one language.
type Toolchain struct {
	// Find finds the tools. Errors match ErrTool and say what to install.
	Find func(context.Context) (Tools, error)
	// build builds a program in a directory that has its source.
	build func(ctx context.Context, t Tools, dir, name string) error
}

// Tools maps names of programs to their paths.
type Tools map[string]string

// inPath finds programs in PATH. install says how to install what is missing.
func inPath(install string, names ...string) (Tools, error) {
	t := Tools{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not in PATH; %s", ErrTool, name, install)
		}
		t[name] = path
	}
	return t, nil
}

// asIs is the build of programs that are run from their source.
func asIs(context.Context, Tools, string, string) error { return nil }

// outputLimit bounds how much of a tool's output an error contains, in bytes.
const outputLimit = 1000

// run executes a command in a directory. It has a process group of its own, so that a cancelled context also ends the
// compilers that it starts.
func run(ctx context.Context, dir string, env []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	end := bytes.TrimSpace(out)
	end = end[max(0, len(end)-outputLimit):]
	return fmt.Errorf("%s %s: %w: %s", argv[0], argv[1], err, strings.Join(strings.Fields(string(end)), " "))
}

// download is run for a command that fails only if a registry does.
func download(ctx context.Context, dir string, env []string, argv ...string) error {
	err := run(ctx, dir, env, argv...)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	return err
}
