package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// built is slowpath as it is released, in a directory of a test, which gives it to other users.
func built(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	path := filepath.Join(dir, "slowpath")
	// Another process writes it: a child that this one starts meanwhile would keep it open, and it could not be run.
	if out, err := exec.Command("cp", filepath.Join(builtProgram(t), "slowpath"), path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// watchedWith runs slowpath against a server for a while, in which its threads must come to have the capabilities that
// want says.
func watchedWith(t *testing.T, c *exec.Cmd, want string) {
	t.Helper()
	var out bytes.Buffer
	c.Args = append(c.Args, "--for", "2s")
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := c.Wait()
		if found := c.ProcessState.ExitCode() == cli.ExitFindings; err != nil &&
			!found { // other tests may use the CPUs
			t.Errorf("%v: %s", err, &out)
		}
	}()
	pattern, last := regexp.MustCompile(want), ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); await.Pass(20 * time.Millisecond) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.Process.Pid))
		all := len(files) > 0
		for _, f := range files {
			if status, err := os.ReadFile(f); err == nil && !pattern.Match(status) {
				all, last = false, string(status)
			}
		}
		if all {
			return
		}
	}
	t.Errorf("a thread is not as %s: %s", want, last)
}

// rights is what a thread's status has, in its order.
func rights(user int, capabilities string) string {
	return fmt.Sprintf(`(?s)Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n.*CapPrm:\t%s\nCapEff:\t%[2]s\n`, user, capabilities) +
		`CapBnd:\t0{16}\n.*NoNewPrivs:\t1\n`
}

// perfmon, sys_ptrace, dac_read_search
const keptCapabilities = "0000004000080004"

// TestPrivilegesOfRoot: root watches with the capabilities that a watch needs to its end, as a user who owns no file,
// or as the one whose directory a recording is in, or whose socket it connects to.
func TestPrivilegesOfRoot(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := t.TempDir()
	slowpath := built(t, dir)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{UnixSocket: true})
	theirs := filepath.Join(dir, "theirs")
	if err := os.Mkdir(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, 4321, 4322); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "TMPDIR="+shared(t))
	t.Run("all", func(t *testing.T) { // they end before what they left is looked at
		for _, c := range []struct {
			name string
			args []string
			user int
		}{
			{"doctor", []string{"doctor", s.Addr, "--profile", "cpu"}, 65534},
			{"trace", []string{"trace", s.Addr}, 65534},
			{"record", []string{"record", s.Addr, "-o", filepath.Join(theirs, "x.slowpath")}, 4321},
			{"record in a directory of root", []string{"record", s.Addr, "-o", filepath.Join(dir, "x.slowpath")}, 0},
			{"unix socket of a user", []string{"doctor", "unix://" + s.Socket}, fleet.ServerUser},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				watch := exec.Command(slowpath, c.args...)
				watch.Env = env
				watchedWith(t, watch, rights(c.user, keptCapabilities))
			})
		}
	})
	for _, d := range []string{theirs, strings.TrimPrefix(env[len(env)-1], "TMPDIR=")} {
		files, err := os.ReadDir(d)
		if err != nil || len(files) > 0 && (len(files) > 1 || files[0].Name() != "x.slowpath") {
			t.Errorf("left in %s: %v, %v", d, files, err)
		}
	}
}

// TestRecordingOfSudo: who calls sudo can read the recording without it. Where everybody may write, slowpath becomes
// that user, and leaves no file beside it.
func TestRecordingOfSudo(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := shared(t)
	slowpath := built(t, dir)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	theirs := filepath.Join(dir, "theirs")
	if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 4321, 4322)); err != nil {
		t.Fatal(err)
	}
	everybody := shared(t)
	for _, place := range []string{theirs, everybody} {
		file := filepath.Join(place, "x.slowpath")
		watch := exec.Command(slowpath, "record", s.Addr, "-o", file)
		watch.Env = append(os.Environ(), "SUDO_UID=4321", "SUDO_GID=4322")
		watchedWith(t, watch, rights(4321, keptCapabilities))
		files, err := os.ReadDir(place)
		if err != nil || len(files) != 1 {
			t.Errorf("in %s: %v, %v", place, files, err)
		}
		read := exec.Command(slowpath, "doctor", file)
		read.Dir, read.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4321, Gid: 4322}}
		out, err := read.CombinedOutput()
		if read.ProcessState == nil || read.ProcessState.ExitCode() > cli.ExitFindings {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// shared is a directory as /tmp is.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "slowpath-test-")
	if err == nil {
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestPrivilegesOfUser: a user with exactly four capabilities has all tiers.
func TestPrivilegesOfUser(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := shared(t)
	slowpath := built(t, dir)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, slowpath, "doctor", s.Addr, "--for", "2s", "--profile", "cpu")
	c.Env, c.Dir = append(os.Environ(), "TMPDIR="+dir), dir
	c.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 4321, Gid: 4322},
		AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH},
	}
	out, err := c.CombinedOutput()
	found := c.ProcessState != nil && c.ProcessState.ExitCode() == cli.ExitFindings // other tests may use the CPUs
	unwrapped := strings.Join(strings.Fields(string(out)), " ")
	if err != nil && !found || !strings.Contains(unwrapped,
		"seen by: own calls [probe], INFO [server], stacks [profile], host's /proc [host], kernel [tap] ") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNothingIsReadBefore: root has given up its privileges when the first byte can come from a server, or from an
// application that is profiled.
func TestNothingIsReadBefore(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := t.TempDir()
	slowpath := built(t, dir)
	server, file := fleettest.Start(t, servers.Redis7015, fleet.Spec{}), filepath.Join(shared(t), "x.slowpath")
	for _, c := range []struct {
		name string
		args func(stranger string) []string
	}{
		{"doctor", func(s string) []string { return []string{"doctor", s} }},
		{"doctor without the tap", func(s string) []string { return []string{"doctor", s, "--no-tap"} }},
		{"CPU time", func(s string) []string { return []string{"doctor", s, "--profile", "cpu"} }},
		{"an application", func(s string) []string { return []string{"doctor", server.Addr, "--pprof", s} }},
		{"record", func(s string) []string { return []string{"record", s, "-o", file} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			stranger, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()
			watch := exec.Command(slowpath, c.args(stranger.Addr().String())...)
			watch.Env = append(os.Environ(), "TMPDIR="+shared(t), "SUDO_UID=65534", "SUDO_GID=65534")
			var out bytes.Buffer
			watch.Stdout, watch.Stderr = &out, &out
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			// It closes each connection at once, so that slowpath ends by itself.
			ended := time.AfterFunc(time.Minute, func() { stranger.Close(); _ = watch.Process.Kill() })
			defer ended.Stop()
			conn, err := stranger.Accept()
			if err != nil {
				t.Fatal(err)
			}
			statuses := threadsOf(watch.Process.Pid)
			conn.Close()
			stranger.Close()
			if err := watch.Wait(); err == nil {
				t.Errorf("a peer that closes connections can be watched: %s", &out)
			}
			want := regexp.MustCompile(rights(65534, keptCapabilities))
			if len(statuses) == 0 {
				t.Error("no thread")
			}
			for _, s := range statuses {
				if !want.MatchString(s) {
					t.Errorf("a thread at the first connection: %s", s)
				}
			}
		})
	}
}

// threadsOf is what the kernel says of each thread of a process.
func threadsOf(pid int) (out []string) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, f := range files {
		if status, err := os.ReadFile(f); err == nil {
			out = append(out, string(status))
		}
	}
	return out
}
