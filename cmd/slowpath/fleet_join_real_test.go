package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/tap"
)

// TestSeveralServersHosts: one host calls servers on two others, which both know themselves by an address of the
// loopback device, and whose clocks are hours apart. KEYS at one of them, and then at both, is one verdict that names
// where it was, by doctor and by fleet doctor.
func TestSeveralServersHosts(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.RedisCLI)
	first := newHosts(t)
	both := []hosts{first, serverOf(t, first.client, 1)}
	var callers []tap.Node
	var names []string
	for _, h := range both {
		h.calls(t, "DEBUG POPULATE 300000")
		c := exec.Command("ip", "netns", "exec", h.client, "redis-cli", "-h", h.address.Addr().String(), "-p",
			fmt.Sprint(h.address.Port()), "-r", "-1", "-i", "0.005", "GET", "small")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		callers = append(callers, tap.Node{Address: h.address.String(), Remote: h.address})
		names = append(names, h.address.String())
	}
	for _, slow := range [][]hosts{both[1:], both} {
		dir := t.TempDir()
		client := filepath.Join(dir, "web.slowpath")
		paths := []string{client}
		ends := []func(){watchNodes(t, client, recording.Client, time.Microsecond, callers)}
		for i, h := range both {
			paths = append(paths, filepath.Join(dir, fmt.Sprintf("redis-%d.slowpath", i)))
			ends = append(ends, watchNodes(t, paths[i+1], recording.Server, time.Microsecond, []tap.Node{{
				Address: fmt.Sprintf("127.0.0.1:%d", h.address.Port()), Remote: h.address,
			}}))
		}
		for _, h := range slow {
			h.calls(t, slices.Repeat([]string{"KEYS nothing*"}, 12)...)
		}
		await.Pass(200 * time.Millisecond) // the last reports lie in the ring for 50 ms
		for _, end := range ends {
			end()
		}
		fleet := filepath.Join(dir, "fleet")
		for i := range paths {
			paths[i] = shifted(t, paths[i], time.Duration(i)*5*time.Hour)
			host := filepath.Join(fleet, "host="+strings.TrimSuffix(filepath.Base(paths[i]), ".slowpath"))
			body, err := os.ReadFile(paths[i])
			if err == nil {
				err = os.MkdirAll(host, 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(host, "1.slowpath"), body, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want := names[len(names)-len(slow):]
		for _, args := range [][]string{
			append([]string{"doctor", "--json"}, paths...),
			{"fleet", fleet, "doctor", "web/1", "--json"},
			{"fleet", fleet, "doctor", "redis-1/1", "--json"},
		} {
			var out, errs bytes.Buffer
			var d verdict.Diagnosis
			code := appOn(&out, &errs).execute(t.Context(), args)
			if err := json.Unmarshal(out.Bytes(), &d); err != nil || code != cli.ExitFindings {
				t.Fatalf("%q: %d, %v: %s", args, code, err, &errs)
			}
			i := slices.IndexFunc(d.Findings, func(f cause.Finding) bool { return f.Cause == "slow-command" })
			if i < 0 {
				t.Fatalf("%q: %s\n%s", args, d.Summary, &errs)
			}
			of := d.Findings[i]
			t.Logf("%q: %s %q: %s", names, of.Cause, of.Nodes, d.Summary)
			if got := slices.Sorted(slices.Values(of.Nodes)); !slices.Equal(got, want) ||
				!slices.Equal(slices.Sorted(slices.Values(d.Target.Nodes)), names) {
				t.Errorf("%q: at %q of %q, want %q of %q", args, got, d.Target.Nodes, want, names)
			}
			if joined := strings.Count(errs.String(), "joined with their server's end in "); joined != 2 {
				t.Errorf("%q: %d servers are joined:\n%s", args, joined, &errs)
			}
		}
	}
}
