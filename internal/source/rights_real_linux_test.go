package source

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"slowpath/internal/house/await"

	"slowpath/internal/house/needs"

	"slowpath/internal/source/host"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// TestNeedsRights: privileges are kept until the servers are known where one has mapped a file that was replaced, as by
// an upgrade: only root finds it.
func TestNeedsRights(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
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
	await.Until(t, "the server listens", func() bool {
		p, err := host.Locate(o.FS, host.Query{Network: "tcp", Listen: to[0].Addr()})
		return err == nil && p.PID == server.Process.Pid
	})
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
	installed, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(installed)
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
