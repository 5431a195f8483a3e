package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/experiment"
)

// comparison is slowpath bench --compare-targets with short loads.
func comparison(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), slowpath, append([]string{
		"bench", "--compare-targets", "--connections", "10", "--warmup", "0s", "--keys", "1000",
	}, args...)...)
}

// compared reads the document.
func compared(t *testing.T, out []byte) (c experiment.Targets) {
	t.Helper()
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// newFleet has a registry of its own.
func newFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// proxies starts those that are installed in front of a server, and gives their addresses by the name of the process.
func proxies(t *testing.T, server *fleet.Instance) map[string]string {
	t.Helper()
	f := newFleet(t)
	found := map[string]string{}
	for process, start := range map[string]func(context.Context, ...*fleet.Instance) (*fleet.Instance, error){
		"haproxy": f.StartHAProxy, "nutcracker": f.StartTwemproxy, "codis-stand-in": f.StartCodis,
	} {
		p, err := start(t.Context(), server)
		if errors.Is(err, fleet.ErrNoProxy) {
			t.Log(err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		found[process] = p.Addr
	}
	return found
}

// TestCompareTargets: each target is loaded as what it is, in turns, and what the load wrote is removed from each.
func TestCompareTargets(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	server := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	cluster := fleettest.StartCluster(t, servers.Redis7015, 3, 0, fleet.Spec{})
	args, labels := []string{server.Addr, cluster.Nodes[0].Addr}, []string{"standalone", "cluster of 3"}
	for process, addr := range proxies(t, server) {
		args, labels = append(args, addr), append(labels, process)
	}
	const rounds = 2
	args = append(args, "--command", "set", "--for", "150ms", "--repeat", strconv.Itoa(rounds))
	out, err := comparison(t, append(args, "--json")...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := compared(t, out)
	if c.Schema != experiment.TargetsSchema || len(c.Targets) != len(labels) || c.Interrupted {
		t.Fatalf("%+v", c)
	}
	for i, x := range c.Targets {
		if x.Target.Label() != labels[i] || x.Target.Address != args[i] || len(x.Runs) != rounds ||
			len(x.Failures) > 0 || x.ErrorShare > 0 || x.LimitedRounds == 0 || x.Sentence == "" {
			t.Errorf("%s: %+v", labels[i], x)
		}
		isProxy := x.Target.Kind == experiment.Proxy
		if (x.ServerCPU == nil) != (labels[i] == "nutcracker") || (x.ProxyCPU != nil) != isProxy ||
			x.GeneratorCPU == nil || (x.Change == nil) != (i == 0) || (x.PerNode != nil) != (i == 1) {
			t.Errorf("%s: %+v", labels[i], x)
		}
		if there, back := x.Runs[0].Order, x.Runs[1].Order; there != len(labels)-i || back != len(labels)+i+1 {
			t.Errorf("%s: not in turns: loads %d and %d", labels[i], there, back)
		}
		said := fmt.Sprintf("(%s) passes calls on to the server of A (standalone)", labels[i])
		passesInfo := labels[i] == "haproxy" || labels[i] == "codis-stand-in"
		if strings.Contains(strings.Join(c.Notes, "\n"), said) != passesInfo {
			t.Errorf("%s: notes %q", labels[i], c.Notes)
		}
	}
	for _, i := range append([]*fleet.Instance{server}, cluster.Nodes...) {
		if left, err := i.Do(t.Context(), "DBSIZE"); err != nil || left != int64(0) {
			t.Errorf("%s has %v keys left, %v", i.Addr, left, err)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	args = append(args, "--html", page)
	out, err = comparison(t, args...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkPage(t, page, labels)
	again := comparison(t, args...)
	if _, err := again.Output(); again.ProcessState.ExitCode() != cli.ExitUsage {
		t.Errorf("onto a page that is there: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if len([]rune(line)) > 81 {
			t.Errorf("more than 80 columns: %q", line)
		}
	}
	for _, want := range []string{" A standalone  B cluster of 3", "\ncalls/s  ", "\n  per node  "} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// checkPage: the page has a column for each target, and only the user can read it.
func checkPage(t *testing.T, path string, labels []string) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, label := range labels {
		if want := "<th>" + experiment.TargetName(i) + " " + label + "</th>"; !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestCompareTargetsWithoutPage: where nothing was measured no empty page is left.
func TestCompareTargetsWithoutPage(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	a := fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"maxclients 6"}})
	page := filepath.Join(t.TempDir(), "page.html")
	c := comparison(t, a.Addr, a.Addr, "--for", "50ms", "--rounds", "1", "--html", page)
	if out, err := c.CombinedOutput(); err == nil {
		t.Fatalf("%s", out)
	}
	if _, err := os.Stat(page); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a page is left: %v", err)
	}
}

// loads waits until a server has been loaded so many times at least: each load opens 10 connections, and some others
// that ask for INFO once or more, as this function does.
func loads(t *testing.T, server *fleet.Instance, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; await.Pass(20 * time.Millisecond) {
		reply, err := server.Do(t.Context(), "INFO", "stats")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := reply.(string)
		_, rest, _ := strings.Cut(text, "total_connections_received:")
		number, _, _ := strings.Cut(rest, "\r")
		reply, err = server.Do(t.Context(), "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		_, info, _ := strings.Cut(fmt.Sprint(reply), "cmdstat_info:calls=")
		asked, _, _ := strings.Cut(info, ",")
		connections, _ := strconv.Atoi(number)
		own, _ := strconv.Atoi(asked)
		if connections-own >= 10*n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not loaded %d times within a minute: %s", n, text)
		}
	}
}

// TestCompareTargetsDown: a target that ends has no further rounds, and the others go on.
func TestCompareTargetsDown(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	stays := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	ends := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	c := comparison(t, stays.Addr, ends.Addr, "--for", "200ms", "--repeat", "6", "--json")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	loads(t, ends, 1)
	if err := ends.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Wait(); c.ProcessState.ExitCode() != cli.ExitFindings {
		t.Errorf("exit code %d", c.ProcessState.ExitCode())
	}
	got := compared(t, out.Bytes())
	a, b := got.Targets[0], got.Targets[1]
	if len(a.Runs) != 6 || len(a.Failures) > 0 || len(b.Runs)+len(b.Failures) != 6 || len(b.Failures) == 0 {
		t.Fatalf("%+v", got.Targets)
	}
	last := b.Failures[len(b.Failures)-1]
	if last.Round != 6 || !strings.Contains(last.Error, "connection refused") ||
		!strings.Contains(got.Summary, "down") {
		t.Errorf("%+v; %s", last, got.Summary)
	}
}

// TestCompareTargetsInterrupted: Ctrl-C gives the table of the loads so far.
func TestCompareTargetsInterrupted(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	a := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	b := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	c := comparison(t, a.Addr, b.Addr, "--for", "100ms", "--rounds", "100", "--json")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	loads(t, a, 6)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	got := compared(t, out.Bytes())
	runs := len(got.Targets[0].Runs)
	if !got.Interrupted || got.Rounds != 100 || runs == 0 || runs > 98 || got.Targets[1].Change == nil {
		t.Errorf("%d rounds; %+v", runs, got)
	}
}
