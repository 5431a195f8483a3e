//go:build linux

package source

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/await"

	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/wire/target"
)

// eventSink passes on events.
type eventSink struct {
	recording.ProfileSink
	mu     sync.Mutex
	events []recording.Event
}

func (s *eventSink) Event(e recording.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *eventSink) Sample(recording.Sample)           {}
func (s *eventSink) ConnUse(string, recording.ConnUse) {}
func (s *eventSink) Snapshot(recording.Snapshot)       {}

func (s *eventSink) process(kind string) (p recording.ServerProcess, seen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == kind {
			return recording.DetailOf[recording.ServerProcess](e), true
		}
	}
	return p, false
}

// TestServerBehindAProxy: the process of the server is found behind an HAProxy of this host, which passes INFO on. With
// two servers behind it a call may go to either.
func TestServerBehindAProxy(t *testing.T) {
	needs.Real(t, needs.Root, needs.HAProxy)
	one, two := fleettest.Start(t, servers.Redis7015, fleet.Spec{}), fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	through := func(servers ...*fleet.Instance) (node, *fleet.Instance) {
		t.Helper()
		p := fleettest.StartProxy(t, (*fleet.Fleet).StartHAProxy, servers...)
		to, err := target.Parse(p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		for range servers { // the proxy keeps a connection to each
			c, err := net.Dial("tcp", p.Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if _, err = c.Write([]byte("PING\r\n")); err == nil {
				_, err = c.Read(make([]byte, 7))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		o := Options{FS: host.Root{}, Clock: clock.New(), Timeout: 10 * time.Second, NoTap: true}
		n, err := connect(t.Context(), o, &eventSink{}, to)
		if err != nil {
			t.Fatal(err)
		}
		return n, p
	}
	n, p := through(one)
	if n.process == nil || n.process.PID != one.PID || n.process.Port != one.Port || n.proxy.PID != p.PID ||
		n.kind() != "proxy" {
		t.Errorf("%+v behind %d (%s), it is %d behind %d", n.process, n.proxy.PID, n.hostWhy, one.PID, p.PID)
	}
	if n, p = through(one, two); n.process != nil || n.proxy.PID != p.PID || n.hostWhy == "" {
		t.Errorf("of two servers: %+v behind %d (%s)", n.process, n.proxy.PID, n.hostWhy)
	}
}

// TestHostFollowsARestart: the host source says that the server's process ended, and goes on with the next one.
func TestHostFollowsARestart(t *testing.T) {
	needs.Real(t, needs.Root)
	i := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	to, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	n := node{target: to, address: to.Addr()}
	n.locate(host.Root{}, host.Query{Network: to.Network, Listen: listenAddress(to)})
	if n.process == nil || n.process.PID != i.PID {
		t.Fatalf("the process of %s was not found: %s", i.Addr, n.hostWhy)
	}
	sink := &eventSink{}
	r := &run{Options: Options{FS: host.Root{}, Clock: clock.New()}, sink: sink}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.watchHost(ctx, n) }()
	event := func(kind string) (p recording.ServerProcess) {
		t.Helper()
		await.Until(t, kind, func() (seen bool) { p, seen = sink.process(kind); return seen })
		return p
	}
	before := i.PID
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := event(recording.KindProcessEnded); p.PID != before || p.Comm != "redis-server" {
		t.Errorf("%+v ended, %d did", p, before)
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := event(recording.KindProcessFound); p.PID != i.PID {
		t.Errorf("%+v was found, it is %d", p, i.PID)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
