package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// aFault is one that a test made.
type aFault struct {
	what       string
	at         *fleet.Instance
	cause      string
	begin, end time.Time
}

// timeline makes faults of three servers that an agent watches.
type timeline struct {
	t       *testing.T
	a, b, c *fleet.Instance
	quota   *fault.Cgroup
	made    []aFault
}

func (l *timeline) make(what string, at *fleet.Instance, cause string, do func()) {
	l.t.Logf("%s: %s", time.Now().UTC().Format("15:04:05.0"), what)
	f := aFault{what: what, at: at, cause: cause, begin: time.Now()}
	do()
	f.end = time.Now()
	l.made = append(l.made, f)
}

// keys calls KEYS for a time.
func (l *timeline) keys(at *fleet.Instance, long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end); await.Pass(300 * time.Millisecond) {
		l.do(at, "KEYS", "nosuch*")
	}
}

func (l *timeline) do(at *fleet.Instance, args ...string) {
	l.t.Helper()
	if _, err := at.Do(l.t.Context(), args...); err != nil {
		l.t.Fatal(err)
	}
}

func (l *timeline) stop(at *fleet.Instance, long time.Duration) {
	if err := syscall.Kill(at.PID, syscall.SIGSTOP); err != nil {
		l.t.Fatal(err)
	}
	await.Pass(long)
	if err := syscall.Kill(at.PID, syscall.SIGCONT); err != nil {
		l.t.Fatal(err)
	}
}

// play makes seven faults, of which one lasts longer than a recording, and two overlap.
func (l *timeline) play() {
	quota := make(chan aFault)
	go func() {
		await.Pass(40 * time.Second)
		f := aFault{what: "a quota of B", at: l.b, cause: "server-cfs-throttled", begin: time.Now()}
		_ = l.quota.SetQuota(2 * time.Millisecond) // where that fails there is no incident
		await.Pass(15 * time.Second)
		_ = l.quota.SetQuota(0)
		f.end = time.Now()
		quota <- f
	}()
	l.make("KEYS at A for 80 s", l.a, "slow-command", func() { l.keys(l.a, 80*time.Second) })
	l.made = append(l.made, <-quota)
	await.Pass(20 * time.Second)
	l.make("A is stopped", l.a, "process-frozen", func() { l.stop(l.a, 1200*time.Millisecond) })
	await.Pass(15 * time.Second)
	l.make("C is stopped", l.c, "process-frozen", func() { l.stop(l.c, 2*time.Second) })
	await.Pass(20 * time.Second)
	l.make("a script at B", l.b, "lua-or-multi-long", func() {
		for range 10 {
			l.do(l.b, "EVAL", "for i = 1, 20000000 do end", "0")
			await.Pass(300 * time.Millisecond)
		}
	})
	await.Pass(40 * time.Second)
	l.make("KEYS at C", l.c, "slow-command", func() { l.keys(l.c, 8*time.Second) })
	await.Pass(20 * time.Second)
	l.make("KEYS at A again", l.a, "slow-command", func() { l.keys(l.a, 5*time.Second) })
}

// TestServeTimeline: seven faults of three servers are seven incidents, each with its server, its cause and its begin.
func TestServeTimeline(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer, needs.QuietCPU)
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	l := timeline{t: t, quota: quotaGroup(t, "timeline")}
	l.a = fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	l.b = fleettest.Start(t, servers.Redis7015, fleet.Spec{CgroupProcs: l.quota.AllProcs()})
	l.c = fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	for s, rate := range map[*fleet.Instance]float64{l.a: 300, l.b: 3000, l.c: 300} { // B's use up its quota
		l.do(s, "EVAL", "for i=1,500000 do redis.call('SET','k'..i,1) end", "0")
		load := traffic.Start(t.Context(), traffic.Spec{Addr: s.Addr, Conns: 5, Rate: rate, Command: traffic.Get(1000)})
		defer load.Stop()
	}
	data := dataDir(t)
	c := exec.CommandContext(t.Context(), slowpath, "serve", "--listen", "127.0.0.1:0", "--data", data, "--after", "5s",
		l.a.Addr, l.b.Addr, l.c.Addr)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	var log clitest.Output
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, &log, "watching .*"+l.c.Addr)
	await.Pass(20 * time.Second)
	l.play()
	await.Pass(20 * time.Second)
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	got := incidentsIn(t, data)
	for _, in := range got {
		t.Logf("%s to %s: %s %q at %s", in.Start.Format("15:04:05"), in.End.Format("15:04:05"), in.Cause, in.Trigger,
			in.Target)
	}
	if len(got) != len(l.made) {
		t.Errorf("%d incidents, want %d: %s", len(got), len(l.made), log.String())
	}
	slices.SortFunc(l.made, func(a, b aFault) int { return a.begin.Compare(b.begin) })
	for i, f := range l.made[:min(len(got), len(l.made))] {
		in := got[i]
		late, longer := in.Start.Sub(f.begin), in.End.Sub(f.end)
		t.Logf("%s: begins %.1f s after it, ends %.1f s after it", f.what, late.Seconds(), longer.Seconds())
		if in.Target != f.at.Addr || in.Cause != f.cause || max(late, -late) > time.Second || longer > 2*time.Second {
			t.Errorf("%s at %s: %s at %s, which begins %v after it", f.what, f.at.Addr, in.Cause, in.Target, late)
		}
	}
}

// incidentsIn are those in the directory of an agent, the oldest first.
func incidentsIn(t *testing.T, data string) []incidents.Incident {
	t.Helper()
	s, err := incidents.Open(foldertest.Open(t, filepath.Join(data, "incidents")), incidents.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := s.List(incidents.Query{})
	slices.Reverse(all)
	return all
}
