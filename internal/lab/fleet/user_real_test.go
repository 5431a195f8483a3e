package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// checkUser reads who a process is.
func checkUser(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	user := strconv.Itoa(ServerUser)
	four := strings.Repeat("\t"+user, 4) + "\n"
	none := ":\t0000000000000000\n"
	for _, want := range []string{
		"\nUid:" + four, "\nGid:" + four, "\nGroups:\t \n", "\nNoNewPrivs:\t1\n", "\nCapPrm" + none, "\nCapEff" + none,
		"\nCapInh" + none, "\nCapAmb" + none, "\nCapBnd" + none,
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("process %d has not %q:\n%s", pid, want, status)
		}
	}
}

// TestServersAreNoRoot tries what a client of a server of root's lab would gain from it.
func TestServersAreNoRoot(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	t.Setenv("REDISCLI_AUTH", "secret-of-root")
	target := t.TempDir() // of root, but open to all, as /etc is
	for _, dir := range []string{filepath.Dir(target), target} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// From the wheel, from Debian with its own loader, and the host's own. From 7.0 on, dir is a protected setting.
	for name, config := range map[servers.Name][]string{
		servers.Redis6214: nil,
		servers.Redis7015: {"enable-protected-configs yes"},
		servers.Valkey811: {"enable-protected-configs yes"},
	} {
		t.Run(string(name), func(t *testing.T) {
			i := start(t, get(t, name), Spec{AOF: true, UnixSocket: true, Config: config})
			checkUser(t, i.PID)
			if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", i.PID)); err != nil ||
				strings.Contains(string(environ), "secret-of-root") {
				t.Errorf("its environment: %q, %v", environ, err)
			}
			info, err := os.Stat(i.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); st.Uid != ServerUser || info.Mode().Perm() != 0o700 {
				t.Errorf("%s belongs to %d, mode %v", i.Dir, st.Uid, info.Mode())
			}
			do(t, i, "SET", "k", "v")
			for _, save := range [][]string{{"SAVE"}, {"CONFIG", "REWRITE"}} { // into its own directory
				if got := do(t, i, save...); got != "OK" {
					t.Errorf("%v: %q", save, got)
				}
			}
			if _, err := i.Do(t.Context(), "CONFIG", "SET", "dir", "/root"); err == nil ||
				!strings.Contains(err.Error(), "Permission denied") {
				t.Errorf("CONFIG SET dir /root: %v", err)
			}
			for _, setting := range [][]string{{"dir", target}, {"dbfilename", "passwd"}} {
				args := append([]string{"CONFIG", "SET"}, setting...)
				if got := do(t, i, args...); got != "OK" {
					t.Errorf("%v: %q", args, got)
				}
			}
			if _, err := i.Do(t.Context(), "SAVE"); err == nil {
				t.Error("SAVE into a directory of root: no error")
			}
			if left, err := os.ReadDir(target); err != nil || len(left) > 0 {
				t.Errorf("in the directory of root: %v, %v", left, err)
			}
		})
	}
}

// TestServerByItsPath: a server in a directory that nobody but root may enter runs as ServerUser, too, and so does one
// that is started through a link. What that user cannot run is refused.
func TestServerByItsPath(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	cached := get(t, servers.Redis6214)
	closed := filepath.Join(t.TempDir(), "closed")
	program, link := filepath.Join(closed, "redis-server"), filepath.Join(t.TempDir(), "link")
	script := filepath.Join(closed, "script") // which the shell has to open, as the user of the servers
	code, err := os.ReadFile(cached.File)
	if err := errors.Join(err, os.Mkdir(closed, 0o700), os.WriteFile(program, code, 0o755), os.Symlink(program, link),
		os.WriteFile(script, []byte("#!/bin/sh\nexec true\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, link} {
		bin, err := ServerAt(t.Context(), path)
		if err != nil || bin.Name != servers.Redis6214 || bin.Version != "6.2.14" || bin.File != program {
			t.Fatalf("%+v, %v", bin, err)
		}
		i := start(t, bin, Spec{})
		checkUser(t, i.PID)
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", i.PID)); err != nil || exe != program {
			t.Errorf("it runs %s, %v", exe, err)
		}
	}
	if _, err := ServerAt(t.Context(), script); err == nil || !strings.Contains(err.Error(), "chmod o+x") {
		t.Errorf("the script: %v", err)
	}
}

// TestProxiesAreNoRoot: what passes for servers, too.
func TestProxiesAreNoRoot(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Twemproxy, needs.HAProxy)
	f, server := newFleet(t), start(t, get(t, servers.Redis7015), Spec{})
	for name, start := range map[string]func() (*Instance, error){
		"twemproxy": func() (*Instance, error) { return f.StartTwemproxy(t.Context(), server) },
		"haproxy":   func() (*Instance, error) { return f.StartHAProxy(t.Context(), server) },
		"envoy":     func() (*Instance, error) { return f.StartEnvoy(t.Context(), server) },
		"codis":     func() (*Instance, error) { return f.StartCodis(t.Context(), server) },
	} {
		t.Run(name, func(t *testing.T) {
			p, err := start()
			if errors.Is(err, ErrNoProxy) { // Envoy is downloaded
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkUser(t, p.PID)
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPrivateTempDir: root's directory of temporary files may be closed to the user of the servers.
func TestPrivateTempDir(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", private)
	i := start(t, get(t, servers.Redis7015), Spec{AOF: true})
	if dir := filepath.Dir(i.Dir); dir != "/tmp" {
		t.Errorf("directory of the server: %s", i.Dir)
	}
	open := t.TempDir()
	for _, dir := range []string{filepath.Dir(open), open} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", open)
	if dir, err := TempDir(); err != nil || dir != open {
		t.Errorf("%s for %s, %v", dir, open, err)
	}
}
