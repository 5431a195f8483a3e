package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Host is the part of the machine that the registry reads and changes. Tests use another one.
type Host struct {
	Proc   string // usually /proc
	Sys    string // usually /sys
	Cgroup string // usually /sys/fs/cgroup; cgroups elsewhere are not touched
	// Run executes a command of the system and returns its output.
	Run func(ctx context.Context, argv ...string) (string, error)
}

// RealHost is this machine.
func RealHost() Host {
	return Host{Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup", Run: runCommand}
}

const commandTimeout = 20 * time.Second

func runCommand(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// bootID identifies the boot of the machine: after a reboot no recorded process is alive.
func (h Host) bootID() string {
	body, _ := os.ReadFile(filepath.Join(h.Proc, "sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(body))
}

// mountPoints lists the mount points in the order of /proc/self/mountinfo (proc(5): field 5, octal escapes).
func (h Host) mountPoints() ([]string, error) {
	body, err := os.ReadFile(filepath.Join(h.Proc, "self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("reading the mounts: %w", err)
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []string
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 4 {
			out = append(out, unescape.Replace(f[4]))
		}
	}
	return out, nil
}

// loopsOf finds the loop devices on a backing file.
func (h Host) loopsOf(file string) []string {
	found, _ := filepath.Glob(filepath.Join(h.Sys, "block/loop*/loop/backing_file"))
	var out []string
	for _, f := range found {
		body, err := os.ReadFile(f)
		if err == nil && strings.TrimSuffix(strings.TrimSpace(string(body)), " (deleted)") == file {
			out = append(out, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(f))))
		}
	}
	return out
}
