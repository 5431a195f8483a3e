package trace

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

func TestIsServer(t *testing.T) {
	for comm, want := range map[string]bool{
		"redis-server": true, "valkey-server": true, "redis-sentinel": true,
		"redis_exporter": false, "nginx": false, "": false,
	} {
		if isServer(comm) != want {
			t.Errorf("%q: %v", comm, !want)
		}
	}
}

// TestNodesOf: one server has one Address, whichever of its addresses clients use.
func TestNodesOf(t *testing.T) {
	var nodes []tap.Node
	for _, at := range []string{"0.0.0.0:6379", "[::]:6379", "10.0.0.5:6380"} {
		a := netip.MustParseAddrPort(at)
		nodes = append(nodes, nodesOf(host.Listener{Process: host.Process{PID: 77, Port: int(a.Port())}, Addr: a},
			nodes)...)
	}
	remotes := map[string]string{}
	for _, n := range nodes {
		remotes[n.Remote.String()] = n.Address
		if n.PID != 77 || n.Port != int(n.Remote.Port()) {
			t.Errorf("%+v", n)
		}
	}
	for remote, want := range map[string]string{
		"127.0.0.1:6379": "127.0.0.1:6379", "[::1]:6379": "127.0.0.1:6379",
		"10.0.0.5:6380": "10.0.0.5:6380", "0.0.0.0:6379": "",
	} {
		if remotes[remote] != want {
			t.Errorf("%s is %q, want %q", remote, remotes[remote], want)
		}
	}
}

func TestResolve(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	parse := func(s string) []target.Target {
		p, err := target.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return []target.Target{p}
	}
	nodes, notes, err := Resolve(t.Context(), host.Root{}, parse(l.Addr().String()))
	if err != nil || len(nodes) != 1 || len(notes) != 0 || nodes[0].PID != os.Getpid() ||
		nodes[0].Remote.String() != l.Addr().String() {
		t.Errorf("%+v, %q, %v", nodes, notes, err)
	}
	for address, want := range map[string]string{"127.0.0.1:1": "nothing listens", "192.0.2.7:6379": "not on this " +
		"host"} {
		if nodes, notes, err := Resolve(t.Context(), host.Root{}, parse(address)); err != nil || len(nodes) != 1 ||
			nodes[0].PID != 0 || len(notes) != 1 || !strings.Contains(notes[0], want) {
			t.Errorf("%s: %+v, %q, %v", address, nodes, notes, err)
		}
	}
	if _, _, err := Resolve(t.Context(), host.Root{}, parse("/tmp/redis.sock")); !errors.Is(err, ErrSocket) {
		t.Errorf("a unix socket: %v", err)
	}
}
