//go:build linux

package tap

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestRestartedServer: clients reach a server at another address than slowpath does. It is known by its process, also
// when that is another one.
func TestRestartedServer(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	const ip = "127.0.0.9"
	port, pid := startServerPID(t, ip)
	known := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.8"), uint16(port))
	tap, rec := openTap(t, Options{Nodes: []Node{{Address: "server", Remote: known, PID: pid, Port: port}}})
	calls := func(command string) {
		t.Helper()
		cli := exec.Command("redis-cli", "-h", ip, "-p", strconv.Itoa(port), "-r", "5", command, "x")
		if out, err := cli.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	calls("STRLEN")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", ip, "--save", "", "--dir", t.TempDir())
	await.Until(t, "its port is free", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Process.Kill(); _ = next.Wait() })
	tap.Restarted("server", next.Process.Pid)
	tap.followRestarts()
	await.Until(t, "it answers", func() bool {
		return exec.Command("redis-cli", "-h", ip, "-p", strconv.Itoa(port), "PING").Run() == nil
	})
	calls("LLEN")
	serverPIDs.Store(port, next.Process.Pid)
	atRest(t, port)
	if _, err := tap.drain(1 << 20); err != nil {
		t.Fatal(err)
	}
	tap.count()
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, h := range rec.Histograms {
		if h.Source == recording.SourceTap && h.Node == "server" {
			seen[h.Op] = true
		}
	}
	if !seen["server STRLEN"] || !seen["server LLEN"] {
		t.Errorf("seen at the server's end: %v", seen)
	}
}
