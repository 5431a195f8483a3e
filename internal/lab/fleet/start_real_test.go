package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"

	"golang.org/x/sys/unix"
)

func do(t *testing.T, i *Instance, args ...string) string {
	t.Helper()
	reply, err := i.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := reply.(string)
	return s
}

func TestPasswordAndACL(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, get(t, servers.Redis7015), Spec{Password: `p "\ä`, ACL: []string{"user reader on >secret ~* +get"}})
	if got := do(t, i, "PING"); got != "PONG" {
		t.Errorf("PING with the password: %q", got)
	}
	c, err := i.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var r refusal
	if _, err := c.ask(t.Context(), "GET", "k"); !errors.As(err, &r) || !strings.HasPrefix(string(r), "NOAUTH") {
		t.Errorf("without password: %v", err)
	}
	if _, err := c.ask(t.Context(), "AUTH", "reader", "secret"); err != nil {
		t.Error(err)
	}
	if _, err := c.ask(t.Context(), "SET", "k", "v"); !errors.As(err, &r) || !strings.HasPrefix(string(r), "NOPERM") {
		t.Errorf("SET by the reader: %v", err)
	}
}

func TestTLS(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range []servers.Name{servers.Redis6016, servers.Redis7015, servers.Valkey811} {
		t.Run(string(name), func(t *testing.T) {
			i := start(t, get(t, name), Spec{TLS: true, Password: "x"})
			if got := do(t, i, "PING"); got != "PONG" { // over verified TLS
				t.Errorf("PING: %q", got)
			}
			plain := i.Info
			plain.TLS = false
			c, err := plain.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if reply, err := c.ask(t.Context(), "PING"); err == nil {
				t.Errorf("without TLS: %v", reply)
			}
		})
	}
	if _, err := newFleet(t).Start(t.Context(), servers.Binary{Server: servers.Server{Name: "redis-5.0.6"}},
		Spec{TLS: true}); err == nil {
		t.Error("TLS of a server without TLS: no error")
	}
}

func TestStartFailureCarriesTheLog(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	f := newFleet(t)
	_, err := f.Start(t.Context(), get(t, servers.Redis7015), Spec{Config: []string{"no-such-directive yes"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

func TestPortTaken(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	bin := get(t, servers.Redis7015)
	first := start(t, bin, Spec{})
	if _, err := newFleet(t).Start(t.Context(), bin, Spec{Port: first.Port}); !errors.Is(err, errPortTaken) {
		t.Errorf("another server has the port: %v", err)
	}
}

// Nodes of a cluster start at the same time, and two may find the same free port.
func TestPortTakenInTheSameGroup(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	f, bin := newFleet(t), get(t, servers.Redis7015)
	g := newGroup()
	first, err := f.start(t.Context(), bin, Spec{}, g, "master")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop(context.Background())
	if _, err := f.start(t.Context(), bin, Spec{Port: first.Port}, g, "master"); !errors.Is(err, errPortTaken) {
		t.Errorf("another node has the port: %v", err)
	}
	if got := do(t, first, "SAVE"); got != "OK" {
		t.Errorf("the first node has lost its directory: SAVE: %v", got)
	}
}

func TestDeadlineOfStart(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newFleet(t).Start(ctx, get(t, servers.Redis7015), Spec{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRestartKeepsTheData(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, get(t, servers.Redis7015), Spec{AOF: true, Config: []string{"appendfsync always"}})
	do(t, i, "SET", "k", "kept")
	if err := i.Restart(t.Context()); err == nil {
		t.Error("restarted a running server")
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.AwaitLoaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, i, "GET", "k"); got != "kept" {
		t.Errorf("GET: %q", got)
	}
}

func TestCPUsNiceAndCgroup(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	f := newFleet(t)
	dir := filepath.Join("/sys/fs/cgroup/cpu", dirPrefix+newID())
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cgroup.procs"); err != nil {
		dir = filepath.Join("/sys/fs/cgroup", dirPrefix+newID()) // version 2
	}
	e, err := f.Registry.Add(Entry{Kind: KindCgroup, Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		_ = f.Registry.Forget(e.ID)
		t.Skip("no cgroup can be made", err)
	}
	defer func() {
		if err := f.Registry.Release(context.Background(), e); err != nil {
			t.Error(err)
		}
	}()
	// 6.0.16 needs an environment of its own, which must not reach sh, taskset and nice.
	i := start(t, get(t, servers.Redis6016), Spec{CPUs: []int{0}, Nice: 5, CgroupProcs: []string{filepath.Join(dir,
		"cgroup.procs")}})
	if !slices.Contains(cgroupPIDs(dir), i.PID) {
		t.Errorf("process %d is not in %s", i.PID, dir)
	}
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(i.PID) + "/status")
	if !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
		t.Errorf("CPUs: %s", status)
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(i.PID) + "/stat")
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 - nice
	if err != nil {
		t.Fatal(err)
	}
	want := strconv.Itoa(min(20-own+5, 19))
	if f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])); f[16] != want { // field 19
		t.Errorf("nice is %s, want %s", f[16], want)
	}
}

func TestNetNS(t *testing.T) {
	needs.Real(t, needs.NetworkNamespaces, needs.RedisServer)
	f := newFleet(t)
	name := dirPrefix + newID()
	e, err := f.Registry.Add(Entry{Kind: KindNetNS, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Registry.Release(context.Background(), e); err != nil {
			t.Error(err)
		}
	}()
	if _, err := runCommand(t.Context(), "ip", "netns", "add", name); err != nil {
		t.Skip("no network namespace can be made", err)
	}
	if _, err := runCommand(t.Context(), "ip", "-n", name, "link", "set", "lo", "up"); err != nil {
		t.Fatal(err)
	}
	i := start(t, get(t, servers.Redis7015), Spec{NetNS: name})
	if got := do(t, i, "PING"); got != "PONG" {
		t.Errorf("PING: %q", got)
	}
	ours, _ := os.Readlink("/proc/self/ns/net")
	if its, err := os.Readlink("/proc/" + strconv.Itoa(i.PID) + "/ns/net"); err != nil || its == ours {
		t.Errorf("namespace %s: %v", its, err)
	}
}
