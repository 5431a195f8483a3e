package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// pageOf is how serve says where its page is.
var pageOf = regexp.MustCompile(`the page: (http://[^\s"]+)`)

// askPage is "page NAME PATH REGEXP" and "page NAME POST PATH".
func askPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: page NAME PATH REGEXP, page NAME POST PATH")
	}
	p, want := clitest.Named(ts, args), regexp.MustCompile(args[2])
	client := &http.Client{Timeout: 10 * time.Second}
	ask := func(base string) (*http.Response, error) { return client.Get(base + strings.TrimPrefix(args[1], "/")) }
	if args[1] == http.MethodPost {
		want = regexp.MustCompile(``)
		ask = func(base string) (*http.Response, error) {
			return client.Post(base+strings.TrimPrefix(args[2], "/"), "application/json", strings.NewReader("{}"))
		}
	}
	last := "no page"
	defer func() { fmt.Fprintln(ts.Stdout(), last) }()
	clitest.Eventually(ts, fmt.Sprintf("%s of %s", args[1:], args[0]), func() bool {
		m := pageOf.FindStringSubmatch(p.ErrOut.String())
		if m == nil {
			return false
		}
		resp, err := ask(m[1])
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		last = string(body)
		// In its first second an agent has no time yet that an incident could be made of.
		refused := args[1] == http.MethodPost && resp.StatusCode >= http.StatusBadRequest
		return err == nil && !refused && want.Match(body)
	})
	var made web.Triggered
	if args[1] == http.MethodPost && json.Unmarshal([]byte(last), &made) == nil {
		ts.Setenv("INCIDENT", made.ID)
	}
}

// TestServeConfig: what a configuration may have, and what is said of one that is wrong.
func TestServeConfig(t *testing.T) {
	read := func(text string, flags ...string) (serveFlags, *config, error) {
		var s serveFlags
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		s.add(f)
		if err := f.Parse(flags); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(path, f)
		if err == nil {
			_, err = s.serving(nil, func(string) string { return "" })
			err = c.locate(err, f)
		}
		if err != nil { // without the directory, which differs
			err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), filepath.Dir(path)+"/"))
		}
		return s, c, err
	}
	good := "data: /var/lib/x\ntargets: [10.0.0.5:6379, 10.0.0.6:6379]\nslow: 20ms\nmemory: 80MB\nmax-age: 7d\n" +
		"slo: p99=10ms\nno-host: true\ncpu-budget: 0.5\n"
	s, c, err := read(good, "--slow", "30ms")
	if err != nil || s.slow != "30ms" || s.data != "/var/lib/x" || s.memory != 80<<20 || !s.noHost ||
		len(s.goals) != 1 || s.cpuBudget != 0.5 || len(c.targets) != 2 || time.Duration(s.maxAge) != 7*24*time.Hour {
		t.Errorf("%v: %+v, %+v", err, s, c)
	}
	const head = "data: /x\n"
	for text, want := range map[string]string{
		"":                               "serve needs a directory",
		head + "probe_rate: 1/s":         `c.yaml:2: unknown option "probe_rate" (did you mean probe-rate?)`,
		head + "slow: 5":                 `c.yaml:2: slow "5": give a duration`,
		head + "memory: lots":            `c.yaml:2: memory: "lots": give a size such as 64MB`,
		head + "no-tap: maybe":           `c.yaml:2: no-tap: "maybe": give true or false`,
		head + "ring: 1m":                `c.yaml:2: ring 1m0s: it must hold a whole incident`,
		head + "slo: [p99=10ms, p98]":    `c.yaml:2: slo "p98": give a percentile`,
		head + "slow: 5ms\nslow: 6ms":    "c.yaml:3: slow is in line 2, too",
		head + "slow:":                   "c.yaml:2: slow is empty",
		head + "slow: [1ms, 2ms]":        "c.yaml:2: slow takes one value",
		head + "slow: {a: b}":            "c.yaml:2: slow: give a value",
		head + "\tslow: 5ms":             "c.yaml:2: no YAML",
		head + "---\nslow: 5ms":          "a second document",
		"- data":                         "c.yaml:1: no options",
		head + "no-trigger: slowly":      `(did you mean slow?)`,
		head + "config: other.yaml":      `unknown option "config"`,
		head + "pass: secret":            `unknown option "pass"`,
		head + "max-disk: 1MB":           "c.yaml:2: max-disk: give a size from 64MB",
		head + "notify: http://a.b/c":    "c.yaml:2: notify: ",
		head + "a: &a [*a, *a, *a]":      "c.yaml:2: unknown option",
		head + "log: xml":                "c.yaml:2: log ",
		head + "token-file: /no/file":    "c.yaml:2: token-file: open /no/file",
		head + "tap-budget: .nan":        "c.yaml:2: tap-budget",
		head + "cpu-budget: 101":         "c.yaml:2: cpu-budget: give percent",
		head + "probe-rate: 0":           "c.yaml:2: probe-rate",
		head + "after: 3m":               "c.yaml:2: after 3m0s",
		head + "password-file: /no/file": "c.yaml:2: password-file",
	} {
		if _, _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		} else if cli.ExitCode(cli.Usage(err)) != cli.ExitUsage {
			t.Errorf("%q: exit code %d", text, cli.ExitCode(err))
		}
	}
}

// TestSizes: sizes and long durations as they are written.
func TestSizes(t *testing.T) {
	for text, want := range map[string]cli.Size{
		"64MB": 64 << 20, "1gb": 1 << 30, "512": 512, "10 KB": 10 << 10,
		"7B": 7,
	} {
		var s cli.Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
		var again cli.Size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s: printed as %s: %d, %v", text, &s, again, err)
		}
	}
	for _, text := range []string{"", "MB", "-1MB", "1.5MB", "9999999999GB", "64Mb8"} {
		var s cli.Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, s)
		}
	}
	for text, want := range map[string]string{"30d": "30d", "36h": "36h0m0s", "0.5d": "12h0m0s", "24h": "1d"} {
		var d cli.Days
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v", text, &d, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1e99d", "NaNd", "soon"} {
		var d cli.Days
		if err := d.Set(text); err == nil {
			t.Errorf("%q is taken as %s", text, &d)
		}
	}
}

// TestServeOfRoot: started as root, the agent becomes nobody or the owner of its directory, keeps what loads programs,
// and still watches with the tap, also after the watch has begun again.
func TestServeOfRoot(t *testing.T) {
	if err := kernelSource(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "slowpath-serve") // which others may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := built(t, dir)
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	owned := filepath.Join(dir, "owned")
	if err := os.Mkdir(owned, 0o700); err != nil {
		t.Fatal(err)
	}
	const someone = 65533
	if err := os.Chown(owned, someone, someone); err != nil {
		t.Fatal(err)
	}
	// bpf, perfmon, sys_ptrace, dac_read_search
	const kept = "000000c000080004"
	for data, user := range map[string]int{filepath.Join(dir, "new"): 65534, owned: someone} {
		c := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", data, r.Addr)
		var log clitest.Output
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, &log, "watching "+r.Addr)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		if err != nil || !regexp.MustCompile(rights(user, kept)).Match(status) {
			t.Errorf("%s: %v: %s", data, err, status)
		}
		_ = c.Process.Signal(syscall.SIGHUP)
		until(t, &log, `the watch begins again(?s:.*)watching `+r.Addr)
		if taps := sourceOf(t, &log, "tap"); !taps {
			t.Errorf("%s: the tap does not see the server: %s", data, log.String())
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	}
	c := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", "/etc", r.Addr)
	if out, err := c.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("is not slowpath's")) {
		t.Errorf("a directory of others: %v: %s", err, out)
	}
}

// sourceOf asks the page of an agent whether nothing is said to be missing of a source.
func sourceOf(t *testing.T, log *clitest.Output, source string) bool {
	t.Helper()
	m := pageOf.FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("no page: %s", log.String())
	}
	resp, err := http.Get(m[1] + "healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var health struct {
		Unseen []struct{ What string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
		t.Fatal(err)
	}
	for _, b := range health.Unseen {
		if strings.Contains(b.What, "through the kernel") && source == "tap" {
			return false
		}
	}
	return true
}

func until(t *testing.T, log *clitest.Output, want string) {
	t.Helper()
	pattern := regexp.MustCompile(want)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if pattern.MatchString(log.String()) {
			return
		}
	}
	t.Fatalf("no %q in: %s", want, log.String())
}

// quotaLab is what a fault needs of a lab, for one test.
type quotaLab struct {
	*testing.T
	registry *fleet.Registry
}

func (l quotaLab) Register(e fleet.Entry) error {
	added, err := l.registry.Add(e)
	if err == nil {
		l.Defer(func(ctx context.Context) error { return l.registry.Release(ctx, added) })
	}
	return err
}

func (l quotaLab) Defer(undo func(context.Context) error) {
	l.Cleanup(func() {
		if err := undo(context.Background()); err != nil {
			l.Error(err)
		}
	})
}

// TestServeFindsAQuota: a server gets a CPU quota while an agent watches it and nobody else does. The incident has the
// cause, with a command that takes the quota away.
func TestServeFindsAQuota(t *testing.T) {
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g, err := fault.CPUCgroup(quotaLab{t, registry}, "agent", 0)
	if errors.Is(err, fault.ErrCannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{CgroupProcs: g.AllProcs()})
	c := exec.Command(slowpath, "serve", "--listen", "127.0.0.1:0", "--data", dataDir(t),
		"--after", "5s", "--longest", "10s", "--cool-down", "2s", r.Addr)
	var log clitest.Output
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	}()
	until(t, &log, "watching "+r.Addr)
	load := traffic.Start(t.Context(), traffic.Spec{Addr: r.Addr, Conns: 10, Command: traffic.Get(1000)})
	defer load.Stop()
	if err := g.SetQuota(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	until(t, &log, "first verdict after .*: server-cfs-throttled: ")
	if err := g.SetQuota(0); err != nil {
		t.Fatal(err)
	}
	until(t, &log, "verdict after .*: server-cfs-throttled: ")
}

// TestServeFindsABurst: what is slow for two seconds is no pattern of the time that a recording has. The incident still
// has the cause, and its recording, too.
func TestServeFindsABurst(t *testing.T) {
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"enable-debug-command yes"}})
	data := dataDir(t)
	c := exec.CommandContext(t.Context(), slowpath, "serve", "--listen", "127.0.0.1:0", "--data", data,
		"--after", "5s", "--longest", "10s", "--cool-down", "2s", r.Addr)
	var log clitest.Output
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, &log, "watching "+r.Addr)
	load := traffic.Start(t.Context(), traffic.Spec{Addr: r.Addr, Conns: 10, Rate: 1000, Command: traffic.Get(1000)})
	defer load.Stop()
	// On a busy host an incident of something else may be going on at the time of a burst.
	recording := ""
	for tries := 0; recording == "" && tries < 4; tries++ {
		time.Sleep(calmBefore)
		for range 10 {
			if _, err := r.Do(t.Context(), "DEBUG", "SLEEP", "0.02"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(untilJudged)
		recording = recordingWith(t, data, "slow-command")
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	if recording == "" {
		if m := regexp.MustCompile(`verdict after .* s: ([a-z]+-[a-z-]+): `).FindStringSubmatch(log.String()); m != nil {
			t.Skipf("something else is slow on this host (%s), and it is more than the bursts", m[1])
		}
		t.Fatalf("no finding: %s", log.String())
	}
	out, err := exec.Command(slowpath, "doctor", recording, "--json").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(out, []byte(`"slow-command"`)) {
		t.Errorf("its recording: %v: %.600s", err, out)
	}
}

// recordingWith is that of an incident of an agent with a finding; empty: there is none.
func recordingWith(t *testing.T, data, finding string) string {
	t.Helper()
	verdicts, err := filepath.Glob(filepath.Join(data, "incidents", "*", "diagnosis.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if text, err := os.ReadFile(v); err == nil && bytes.Contains(text, []byte(strconv.Quote(finding))) {
			return filepath.Join(filepath.Dir(v), "recording.slowpath")
		}
	}
	return ""
}

const (
	calmBefore  = 15 * time.Second // so that the burst after it is less than 1 % of all calls
	untilJudged = 12 * time.Second // after a burst
)

// dataDir is for an agent, which gives root up: the parent of t.TempDir is root's alone.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}
