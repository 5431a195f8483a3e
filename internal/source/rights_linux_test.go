package source

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"slowpath/internal/lab/servers"
	"slowpath/internal/source/host"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// TestNeedsRights: privileges are kept until the servers are known where one has mapped a file that was replaced, as by
// an upgrade: only root finds it.
func TestNeedsRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	program, port := copied(t), freePort(t)
	server := exec.Command(program, "--port", port, "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	to, err := (&target.Options{}).Targets([]string{"127.0.0.1:" + port}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Targets: to, Slow: "auto"}.withDefaults()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		p, err := host.Locate(o.FS, host.Query{Network: "tcp", Listen: to[0].Addr()})
		if err == nil && p.PID == server.Process.Pid {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not listen: %+v, %v", p, err)
		}
	}
	watching := run{Options: o, cpuClock: &profile.CPU{}}
	nothing := run{Options: o}
	if watching.needsRights() {
		t.Error("rights are needed for files that are in place")
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if !watching.needsRights() {
		t.Error("no rights are needed for a program that was removed")
	}
	if nothing.needsRights() {
		t.Error("rights are needed where no process is hooked or sampled")
	}
	other := watching
	other.Targets, other.CPUOf = nil, []int{server.Process.Pid}
	if !other.needsRights() {
		t.Error("no rights are needed for a process that was named")
	}
	other.CPUOf, other.Processes = nil, tap.ProcessFilter{PID: os.Getpid()}
	if other.needsRights() {
		t.Error("rights are needed for another process")
	}
}

// copied is the host's own server in a directory of this test.
func copied(t *testing.T) string {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	bin, err := cache.Get(ctx, servers.Redis7015, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) || err == nil && len(bin.Lead) > 0 {
		t.Skip("needs an installed redis-server 7.0.15: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(bin.File)
	path := filepath.Join(t.TempDir(), "redis-server")
	if err == nil {
		err = os.WriteFile(path, body, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
