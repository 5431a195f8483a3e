package profile

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"

	"slowpath/internal/house/needs"
)

// copyOf copies a program or a library under another name.
func copyOf(t *testing.T, path, as string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(as, text, 0o700); err != nil {
		t.Fatal(err)
	}
	return as
}

// TestFalseJVM: of a process that only calls itself java nothing is executed, it is not sent SIGQUIT, and nobody else
// is taken for it.
func TestFalseJVM(t *testing.T) {
	needs.Real(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	libraries, _ := filepath.Glob("/lib/*/libm.so.6")
	if len(libraries) == 0 {
		t.Skip("needs /lib/*/libm.so.6")
	}
	for _, c := range []struct {
		name   string
		env    func(dir string) []string
		listen bool // another process has the attach socket
		want   string
	}{
		{"without a JVM in it", func(string) []string { return nil }, false, "no libjvm.so"},
		{"with a library that is called so", func(dir string) []string {
			return []string{"LD_PRELOAD=" + copyOf(t, libraries[0], filepath.Join(dir, "libjvm.so"))}
		}, false, "SIGQUIT"},
		{"with the socket of another process", func(string) []string { return nil }, true, "another process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			ran := filepath.Join(dir, "ran")
			jcmd := fmt.Sprintf("#!/bin/sh\nid >%s\n", ran)
			if err := os.WriteFile(filepath.Join(dir, "jcmd"), []byte(jcmd), 0o700); err != nil {
				t.Fatal(err)
			}
			java := exec.Command(copyOf(t, sleep, filepath.Join(dir, "java")), "60")
			java.Env = c.env(dir)
			if err := java.Start(); err != nil {
				t.Fatal(err)
			}
			exited := make(chan error, 1)
			go func() { exited <- java.Wait() }()
			t.Cleanup(func() { _ = java.Process.Kill(); <-exited })
			pid := java.Process.Pid
			await.Until(t, "its own name and libraries", func() bool {
				comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
				return err == nil && strings.TrimSpace(string(comm)) == "java" &&
					strings.Contains(string(maps), "/libc.so")
			})
			if c.listen {
				l, err := net.Listen("unix", fmt.Sprintf("/tmp/.java_pid%d", pid))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			_, err := Open(t.Context(), Options{Targets: []Target{one(t, strconv.Itoa(pid))}})
			if !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("its jcmd was executed")
			}
			// Of several signals that wait, the one with the smallest number ends a process: SIGQUIT, if it was sent.
			_ = java.Process.Signal(syscall.SIGTERM)
			if err := <-exited; java.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended: %v", err)
			}
			exited <- nil
		})
	}
}
