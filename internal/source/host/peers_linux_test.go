package host

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnected: what a process dialled, and not what it accepted.
func TestConnected(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ends := map[netip.AddrPort]bool{}
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends[netip.MustParseAddrPort(c.LocalAddr().String())] = true
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
	}
	p, peers, err := Connected(nil, os.Getpid())
	if err != nil || p.PID != os.Getpid() {
		t.Fatalf("%+v, %v", p, err)
	}
	to := netip.MustParseAddrPort(l.Addr().String())
	if len(peers) != 1 || peers[0].Addr != to || peers[0].Connections != 3 || !ends[peers[0].Local] {
		t.Errorf("peers are %v, want 3 connections to %v from one of %v", peers, to, ends)
	}
	if _, _, err := Connected(nil, 1<<23); !errors.Is(err, ErrNotHere) {
		t.Errorf("a process that does not exist: %v", err)
	}
	usual := []Peer{
		{Addr: netip.MustParseAddrPort("10.0.0.1:5432"), Connections: 9},
		{Addr: netip.MustParseAddrPort("10.0.0.1:6379"), Connections: 1},
	}
	if slices.SortFunc(usual, func(a, b Peer) int {
		return isRedisPort(b) -
			isRedisPort(a)
	}); usual[0].Addr.Port() != 6379 {
		t.Errorf("the usual port is not first: %v", usual)
	}
}

func TestIsServer(t *testing.T) {
	for _, c := range []struct {
		comm, args0 string
		want        bool
	}{
		{"redis-server", "/usr/bin/redis-server", true},
		{"valkey-server", "", true},
		{"main", "/opt/redis/bin/redis-server", true},
		{"nginx", "nginx: worker", false},
		{"python3", "/srv/redis/serve.py", false},
	} {
		if got := (Process{Comm: c.comm, Args0: c.args0}).IsServer(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestAwaitEnd: a process has ended when its PID is gone, a zombie, or that of another process.
func TestAwaitEnd(t *testing.T) {
	for what, after := range map[string]string{
		"it is gone": "", "a zombie": strings.Replace(statLine, " R ", " Z ", 1),
		"another process": strings.Replace(statLine, " 123456 ", " 123457 ", 1),
	} {
		t.Run(what, func(t *testing.T) {
			root := tree(t, map[string]string{"/proc/77/stat": statLine})
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan bool, 1)
				go func() { ended <- AwaitEnd(t.Context(), root, 77) }()
				select {
				case <-ended:
					t.Fatal("the process was said to have ended while it ran")
				case <-time.After(time.Hour):
				}
				file := root.Path("/proc/77/stat")
				if after == "" {
					_ = os.Remove(file)
				} else if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
					t.Fatal(err)
				}
				if !<-ended {
					t.Error("the process has ended, and was said not to")
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if AwaitEnd(ctx, nil, os.Getpid()) {
		t.Error("this process was said to have ended")
	}
}
