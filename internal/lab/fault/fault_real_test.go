package fault

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleettest"
)

// need skips the test where this machine cannot make a fault.
func need(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrCannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestCPUCgroup(t *testing.T) {
	needs.Real(t, needs.Root)
	g, err := CPUCgroup(fleettest.NewLab(t), "test", 20*time.Millisecond)
	need(t, err)
	if g.v2 {
		if got := readFile(t, g.dir, "cpu.max"); got != "20000 100000" {
			t.Errorf("cpu.max: %s", got)
		}
		return
	}
	got := readFile(t, g.dir, "cpu.cfs_quota_us") + " " + readFile(t, g.dir, "cpu.cfs_period_us")
	if got != "20000 100000" {
		t.Errorf("quota and period: %s", got)
	}
}

func TestMemoryCgroup(t *testing.T) {
	needs.Real(t, needs.Root)
	g, err := MemoryCgroup(fleettest.NewLab(t), 256<<20)
	need(t, err)
	file := "memory.limit_in_bytes"
	if g.v2 {
		file = "memory.max"
	}
	if got := readFile(t, g.dir, file); got != "268435456" {
		t.Errorf("%s: %s", file, got)
	}
}

// TestNetNS reaches a listener in the namespace until a firewall rule drops its packets.
func TestNetNS(t *testing.T) {
	needs.Real(t, needs.NetworkNamespaces)
	n, err := NewNetNS(t.Context(), fleettest.NewLab(t))
	need(t, err)
	need(t, n.LimitReplies(t.Context(), "1gbit"))
	dial := func(timeout time.Duration) error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(n.Addr, "1"), timeout)
		if err == nil {
			c.Close()
		}
		return err
	}
	var timeout interface{ Timeout() bool }
	if err := dial(30 * time.Second); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("a port where nobody listens: %v", err)
	}
	need(t, n.Rules(t.Context(), "table inet t {\n chain c {\n  type filter hook input priority 0;\n  drop;\n }\n}\n"))
	if err := dial(time.Second); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("behind a firewall: %v", err)
	}
}

// TestNarrowPath reaches a closed port of a namespace by its second path, and by its first one.
func TestNarrowPath(t *testing.T) {
	needs.Real(t, needs.NetworkNamespaces)
	l := fleettest.NewLab(t)
	n, err := NewNetNS(t.Context(), l)
	need(t, err)
	p, err := NewNarrowPath(t.Context(), l, n, 1400)
	need(t, err)
	for _, address := range []string{n.Addr, p.Addr} {
		_, err := net.DialTimeout("tcp", net.JoinHostPort(address, "1"), 5*time.Second)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSlowDisk(t *testing.T) {
	needs.Real(t, needs.Root)
	l := fleettest.NewLab(t)
	d, err := NewSlowDisk(t.Context(), l, 1_000_000)
	need(t, err)
	if got := readFile(t, d.cgroup, throttle); got != d.device+" 1000000" {
		t.Errorf("limit: %q", got)
	}
	if err := os.WriteFile(filepath.Join(d.Mount, "file"), []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
	if err := d.Unlimit(); err != nil {
		t.Error(err)
	}
	if got := readFile(t, d.cgroup, throttle); got != "" {
		t.Errorf("limit: %q", got)
	}
}

func TestSwapFile(t *testing.T) {
	needs.Real(t, needs.Root)
	need(t, SwapFile(t.Context(), fleettest.NewLab(t), 16<<20))
	if got := readFile(t, "/proc/swaps"); !strings.Contains(got, "/slowpath-swap-") {
		t.Errorf("/proc/swaps: %s", got)
	}
}

// TestNameServer asks it three times, and gets no answer to the second query.
func TestNameServer(t *testing.T) {
	needs.Real(t, needs.Root)
	l := fleettest.NewLab(t)
	argv, err := (&NameServer{Delay: time.Millisecond, LoseEvery: 2}).Start(l)
	need(t, err)
	_, addr, _ := strings.Cut(readFile(t, argv[len(argv)-1]), "nameserver ")
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(addr, "53"))
	}}
	host, port, err := net.SplitHostPort(ByName("127.0.0.1:6379"))
	if err != nil || port != "6379" {
		t.Fatalf("port %s, %v", port, err)
	}
	for query, answered := range []bool{true, false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		ips, err := resolver.LookupIP(ctx, "ip4", host+".")
		cancel()
		if answered && (err != nil || len(ips) != 1 || ips[0].String() != "127.0.0.1") || !answered && err == nil {
			t.Errorf("query %d: %v, %v", query+1, ips, err)
		}
	}
}
