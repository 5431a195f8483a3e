//go:build linux

package tap

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// hooksOpen is how many descriptors this process has of hooks: links, and where the kernel has none to many places,
// events of perf.
func hooksOpen(t *testing.T) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		what, _ := os.Readlink("/proc/self/fd/" + fd.Name()) // it may be that of the directory
		if strings.HasPrefix(what, "anon_inode:bpf") || what == "anon_inode:[perf_event]" {
			n++
		}
	}
	return n
}

// TestRestartsKeepNothing: what hooks a server, its functions and its TLS, is closed once it has ended.
func TestRestartsKeepNothing(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	pid, port, plain := startTLS(t)
	remote := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	watch, _ := openTap(t, Options{Nodes: []Node{{Address: "server", Remote: remote, PID: pid, Port: plain}}})
	before := hooksOpen(t)
	if len(watch.functions)+len(watch.plaintexts.links) == 0 {
		t.Fatal("the server is not hooked")
	}
	for range 3 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		last := pid
		await.Until(t, "it has ended", func() bool {
			began, known := watch.ends.began(uint32(last))
			return known && began == ""
		})
		pid, _, _ = startTLS(t)
		watch.Restarted("server", pid)
		watch.followRestarts()
		if hooksOpen(t) <= before {
			t.Fatal("the next server is not hooked")
		}
		watch.forgetEnded()
	}
	if after := hooksOpen(t); after != before {
		t.Errorf("%d hooks, %d before the restarts", after, before)
	}
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
	if after := hooksOpen(t); after != 0 {
		t.Errorf("%d hooks after the end", after)
	}
}
