package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestOddNames: a client whose process is called so that it would drive a terminal, and which calls itself as no shell
// should see, is shown as text. The kernel's name of a process is that of its file.
func TestOddNames(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer, needs.RedisCLI)
	if err := kernelSource(); err != nil {
		t.Skip(err)
	}
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("needs redis-cli")
	}
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	const odd = "\x1b[2J\u009b\x7f\u202eab"
	client := filepath.Join(t.TempDir(), odd)
	if err := os.Symlink(cli, client); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"trace":         {"trace", s.Addr, "--all", "--sample", "1000/s", "--count", "12", "--for", "30s"},
		"trace --json":  {"trace", s.Addr, "--all", "--sample", "1000/s", "--count", "12", "--for", "30s", "--json"},
		"doctor":        {"doctor", s.Addr, "--for", "2s", "--slow", "1us"},
		"doctor --json": {"doctor", s.Addr, "--for", "2s", "--slow", "1us", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			c := exec.CommandContext(t.Context(), slowpath, args...)
			c.Env, c.Stdout, c.Stderr = append(os.Environ(), "LANG=C.UTF-8"), &out, &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = c.Wait(); close(ended) }() // 1: findings
			callUntil(t, ended, client, strconv.Itoa(s.Port))
			shown := out.String()
			if !strings.Contains(shown, "ab") || !strings.Contains(name, "doctor") && !strings.Contains(shown, "GET") {
				t.Errorf("not about the client: %s%s", shown, &errs)
			}
			for _, r := range strings.ReplaceAll(shown+errs.String(), "\n", "") {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%U in %q", r, shown)
				}
			}
			if strings.HasSuffix(name, "--json") && !json.Valid([]byte(strings.Split(shown, "\n{")[0])) {
				t.Errorf("not JSON: %s", shown)
			}
		})
	}
}

// callUntil makes calls under odd names until slowpath has ended.
func callUntil(t *testing.T, ended <-chan struct{}, client, port string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		select {
		case <-ended:
			return
		default:
		}
		c := exec.CommandContext(t.Context(), client, "-p", port)
		c.Stdin = strings.NewReader("client setname $(id);'x`id`\nget a\nget b\n")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Fatal("slowpath has not ended")
}
