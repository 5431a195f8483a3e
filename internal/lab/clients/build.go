package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// goProgram builds a program with the host's go command. The modules come through GOPROXY, once per machine.
func (c *Cache) goProgram(ctx context.Context, name Name, progress io.Writer) ([]string, error) {
	s, err := goSource(name)
	if err != nil {
		return nil, err
	}
	dir, err := c.install(name, s, func(dir string) error {
		fmt.Fprintf(progress, "%s: building the client\n", name)
		if err := run(ctx, dir, "go", "mod", "download"); err != nil {
			return err
		}
		return run(ctx, dir, "go", "build", "-trimpath", "-buildvcs=false", "-o", string(name), ".")
	})
	return []string{filepath.Join(dir, string(name))}, err
}

// run executes the go command in the program's module. What cannot be downloaded is told apart from what does not compile.
func run(ctx context.Context, dir string, argv ...string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%w: %s is not in PATH; Go 1.26 or newer is at https://go.dev/dl/", ErrTool, argv[0])
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	said := strings.Join(strings.Fields(string(bytes.TrimSpace(out[max(0, len(out)-1000):]))), " ")
	if argv[1] == "mod" {
		return fmt.Errorf("%w: go %s: %w: %s", ErrRegistry, argv[1], err, said)
	}
	return fmt.Errorf("go %s: %w: %s", argv[1], err, said)
}

// pythonProgram has nothing to build; its script lies in the cache as the others do.
func (c *Cache) pythonProgram(ctx context.Context, name Name) ([]string, error) {
	s, err := pythonSource(name)
	if err != nil {
		return nil, err
	}
	python, err := findPython(ctx, "python3", "/usr/bin/python3")
	if err != nil {
		return nil, err
	}
	dir, err := c.install(name, s, func(string) error { return nil })
	return []string{python, "-B", filepath.Join(dir, string(name)+".py")}, err
}

// findPython takes the first Python that has the library: the Debian package is seen by Debian's own Python only, and another may stand
// before it in PATH.
func findPython(ctx context.Context, candidates ...string) (string, error) {
	for _, candidate := range candidates {
		path, err := exec.LookPath(candidate)
		if err == nil && exec.CommandContext(ctx, path, "-c", "import redis.asyncio").Run() == nil {
			return path, nil
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", fmt.Errorf("%w: no python3 with redis.asyncio; apt-get install python3-redis", ErrTool)
}
