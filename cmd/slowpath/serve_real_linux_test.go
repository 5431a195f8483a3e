package main

import (
	"bytes"
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

	"slowpath/internal/agent/web"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
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

// TestServeOfRoot: started as root, the agent becomes nobody or the owner of its directory, keeps what loads programs,
// and still watches with the tap, also after the watch has begun again.
func TestServeOfRoot(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
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
		await.Until(t, "it is said that changes of nftables are not heard", func() bool {
			return strings.Contains(unseenBy(t, &log), "changes of netfilter rules (nftables)")
		})
		if unseen := unseenBy(t, &log); strings.Contains(unseen, "through the kernel") {
			t.Errorf("%s: the tap does not see the server: %s: %s", data, unseen, log.String())
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

// unseenBy is what an agent cannot see, by its page.
func unseenBy(t *testing.T, log *clitest.Output) string {
	t.Helper()
	m := pageOf.FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("no page: %s", log.String())
	}
	_, body := get(t, m[1]+"healthz")
	var health struct{ Unseen []struct{ What string } }
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(health.Unseen)
}

func until(t *testing.T, log *clitest.Output, want string) {
	t.Helper()
	pattern := regexp.MustCompile(want)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); await.Pass(20 * time.Millisecond) {
		if pattern.MatchString(log.String()) {
			return
		}
	}
	t.Fatalf("no %q in: %s", want, log.String())
}

// quotaGroup is a cgroup of CPU time for the server of a test, which is skipped where there can be none.
func quotaGroup(t *testing.T, name string) *fault.Cgroup {
	t.Helper()
	g, err := fault.CPUCgroup(fleettest.NewLab(t), name, 0)
	if errors.Is(err, fault.ErrCannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestServeFindsAQuota: a server gets a CPU quota while an agent watches it and nobody else does. The incident has the
// cause, with a command that takes the quota away.
func TestServeFindsAQuota(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	g := quotaGroup(t, "agent")
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	data := dataDir(t)
	// On a crowded host a server of usual priority waits for a CPU as well, for longer than for its quota.
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{CgroupProcs: g.AllProcs(), Nice: -20})
	c := exec.Command(slowpath, "serve", "--listen", "127.0.0.1:0", "--data", data,
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
	await.Until(t, "an incident has the cause", func() bool {
		return recordingWith(t, data, "server-cfs-throttled") != ""
	})
	if err := g.SetQuota(0); err != nil {
		t.Fatal(err)
	}
	until(t, &log, `: verdict after `)
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

// dataDir is for an agent, which gives root up: the parent of t.TempDir is root's alone.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}
