package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Reasons outside of this program why a server is not available.
var (
	// ErrRegistry says that a download failed: the registry is unreachable, refuses, or no longer has the file.
	ErrRegistry = errors.New("cannot be downloaded from its registry")
	// ErrTool says that a program is missing on this host; the message names the Debian package that has it.
	ErrTool = errors.New("a tool is missing")
)

// tool is a program of the host and the Debian package to install when it is missing.
type tool struct{ name, pkg string }

var (
	aptGet  = tool{"apt-get", "apt"}
	dpkgDeb = tool{"dpkg-deb", "dpkg"}
	python  = tool{"python3", "python3-pip"}
	gcc     = tool{"gcc", "gcc libc6-dev"}
	gnuMake = tool{"make", "make"}
)

func (t tool) find() (string, error) {
	path, err := exec.LookPath(t.name)
	if err != nil {
		return "", fmt.Errorf("%w: %s is not in PATH; apt-get install %s", ErrTool, t.name, t.pkg)
	}
	return path, nil
}

// outputLimit bounds what is kept of a tool's output, in bytes; only its end goes into an error.
const outputLimit = 64 << 10

// commandInGroup is a command with a process group of its own, so that the end of the context also ends its children.
func commandInGroup(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run executes the tool in dir and returns the end of its output. The end of the context also ends the compilers under
// make.
func (t tool) run(ctx context.Context, dir string, args ...string) (string, error) {
	path, err := t.find()
	if err != nil {
		return "", err
	}
	cmd := commandInGroup(ctx, append([]string{path}, args...))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out := &tail{limit: outputLimit}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.String(), fmt.Errorf("%s: %w: %s", t.name, err, lastError(out.Bytes()))
	}
	return out.String(), nil
}

// tail keeps the last limit bytes written to it.
type tail struct {
	bytes.Buffer
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - t.limit; over > 0 {
		t.Next(over)
	}
	return n, err
}

var _ io.Writer = (*tail)(nil)

// lastLine is the last line that is not empty.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// lastError prefers the last line that looks like an error (apt "E:", pip "ERROR:", gcc "error:") to the last line.
func lastError(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "E:") || strings.Contains(strings.ToLower(line), "error:") {
			return line
		}
	}
	return lastLine(out)
}

// oneLine joins errors on one line and keeps them matchable.
func oneLine(errs []error) error {
	if len(errs) == 0 {
		return errors.New("no source of it is known")
	}
	joined := errs[0]
	for _, err := range errs[1:] {
		joined = fmt.Errorf("%w; then %w", joined, err)
	}
	return joined
}
