package source

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// TestPasswordOfPeers: a real server with a password names a node on this host, where somebody collects what is sent.
func TestPasswordOfPeers(t *testing.T) {
	s := fleettest.StartMap(t, servers.Redis7015, fleet.MapSpec{Masters: 2}, fleet.Spec{Password: "secret-of-all"})
	collector := collect(t, "127.77.0.2:6379") // the second node of the map
	host, port, err := net.SplitHostPort(outside(t, s.Addr))
	if err != nil {
		t.Fatal(err)
	}
	seed := target.Target{Network: "tcp", Host: host, Password: "secret-of-all"}
	seed = seed.WithAddr(net.JoinHostPort(host, port))
	for _, clustered := range []bool{false, true} {
		rec := recording.New()
		o := Options{
			Targets: []target.Target{seed}, NoHost: true, NoTap: true, Cluster: clustered,
			Timeout: time.Second,
		}.withDefaults()
		nodes, err := connectAll(t.Context(), o, rec)
		if err != nil || len(nodes) == 0 || nodes[0].address != seed.Addr() {
			t.Fatalf("%v, %v", nodes, err)
		}
		if got := strings.Contains(collector(), "secret-of-all"); got != clustered {
			t.Errorf("-c %v: the password was sent: %v", clustered, got)
		}
		var blind string
		for _, e := range rec.Events {
			blind += e.Subject + " " + e.Detail
		}
		if want := "127.77.0.2:6379 "; !strings.Contains(blind, want) ||
			strings.Contains(blind, "the password would be sent there") == clustered {
			t.Errorf("-c %v: %s", clustered, blind)
		}
	}
}

// collect listens at an address, answers nothing, and gives what was sent.
func collect(t *testing.T, addr string) func() string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	var all strings.Builder
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				for {
					n, err := c.Read(b)
					mu.Lock()
					all.Write(b[:n])
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return func() string { mu.Lock(); defer mu.Unlock(); return all.String() }
}

// outside gives an address of this host's own, no loopback one, that leads to a server.
func outside(t *testing.T, to string) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0"))
		if err != nil {
			continue
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					s, err := net.Dial("tcp", to)
					if err != nil {
						return
					}
					defer s.Close()
					go func() { _, _ = io.Copy(s, c) }()
					_, _ = io.Copy(c, s)
				}()
			}
		}()
		return l.Addr().String()
	}
	t.Skip("this host has no address but loopback ones")
	return ""
}
