//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/serving"
)

// TestServeConfig: what a configuration may have, and what is said of one that is wrong.
func TestServeConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	read := func(text string, args ...string) (o serving.Options, err error) {
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		addServeFlags(f, &o)
		if err := f.Parse(append(args, "--check-config", "--config", path)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &serving.Program{Program: appOn(io.Discard, io.Discard).Program}
		err = serving.Run(t.Context(), p, &o, f, nil)
		return o, err
	}
	good := "data: /var/lib/x\ntargets: [10.0.0.5:6379, 10.0.0.6:6379]\nslow: 20ms\nmemory: 80MB\nmax-age: 7d\n" +
		"slo: p99=10ms\nno-host: true\ncpu-budget: 0.5\n"
	o, err := read(good, "--slow", "30ms")
	if err != nil || o.Slow != "30ms" || o.Data != "/var/lib/x" || o.Memory != 80<<20 || !o.NoHost ||
		len(o.Goals) != 1 || o.CPUBudget != 0.5 || len(o.Targets) != 2 || time.Duration(o.MaxAge) != 7*24*time.Hour {
		t.Errorf("%v: %+v", err, o)
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
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		} else if cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: exit code %d", text, cli.ExitCode(err))
		}
	}
}
