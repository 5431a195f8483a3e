//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// testServers starts real servers for scripts. It is nil where there is no redis-server 7.0.15.
type testServers struct {
	fleet  *fleet.Fleet
	binary servers.Binary
	mu     sync.Mutex
	pids   map[string]int // by address
	lab    fleettest.Lab
	quotas map[int]*fault.Cgroup // by pid
}

func newServers(t *testing.T) *testServers {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), servers.Redis7015, t.Output())
	if err != nil {
		t.Logf("scripts that need a server are skipped: %v", err)
		return nil
	}
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return &testServers{
		fleet: f, binary: bin, pids: map[string]int{}, lab: fleettest.NewLab(t), quotas: map[int]*fault.Cgroup{},
	}
}

// start is "redis NAME [OPTION]…".
func (s *testServers) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: redis NAME [tls|socket|auth=PASSWORD|acl=LINE|config=LINE|cluster=MASTERS]...")
	}
	name, options := args[0], args[1:]
	spec := fleet.Spec{}
	_, spec.TLS = value(options, "tls")
	_, spec.UnixSocket = value(options, "socket")
	spec.Password, _ = value(options, "auth")
	if line, ok := value(options, "acl"); ok {
		spec.ACL = []string{line}
	}
	if line, ok := value(options, "config"); ok {
		spec.Config = []string{line}
	}
	masters := 0
	if text, ok := value(options, "cluster"); ok {
		n, err := strconv.Atoi(text)
		ts.Check(err)
		masters = n
	}
	i := s.launch(ts, masters, spec)
	ts.Setenv(name, i.Addr)
	ts.Setenv(name+"_CA", i.CACert)
	ts.Setenv(name+"_SOCKET", i.Socket)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[i.Addr] = i.PID
}

// launch starts a server, or a cluster if there are masters, and gives the first.
func (s *testServers) launch(ts *testscript.TestScript, masters int, spec fleet.Spec) fleet.Info {
	ctx := context.Background() // the script's end stops them
	if masters == 0 {
		i, err := s.fleet.Start(ctx, s.binary, spec)
		ts.Check(err)
		ts.Defer(func() { ts.Check(i.Stop(ctx)) })
		return i.Info
	}
	c, err := s.fleet.StartCluster(ctx, s.binary, masters, 0, spec)
	ts.Check(err)
	ts.Defer(func() { ts.Check(c.Stop(ctx)) })
	ts.Setenv("ADDRESSES", strings.Join(c.Addrs(), "\n"))
	return c.Nodes[0].Info
}

// freeze is "freeze NAME".
func (s *testServers) freeze(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeze NAME")
	}
	s.mu.Lock()
	pid := s.pids[ts.Getenv(args[0])]
	s.mu.Unlock()
	ts.Check(syscall.Kill(pid, syscall.SIGSTOP))
	ts.Defer(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}

// quota is "quota NAME DURATION".
func (s *testServers) quota(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: quota NAME DURATION")
	}
	quota, err := time.ParseDuration(args[1])
	ts.Check(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := s.pids[ts.Getenv(args[0])]
	if g := s.quotas[pid]; g != nil {
		ts.Check(g.SetQuota(quota))
		return
	}
	g, err := fault.CPUCgroup(s.lab, fmt.Sprintf("slowpath-script-%d", pid), quota)
	ts.Check(err)
	ts.Check(g.Add(pid))
	s.quotas[pid] = g
}
