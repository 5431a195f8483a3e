package main

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/cli"
)

// TestNeedsLinux: where Linux is missing, a command says so whatever its flags, and has its help all the same.
func TestNeedsLinux(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"bench 127.0.0.1:6379 --rate 5000/s -c", cli.ExitMissing},
		{"bench", cli.ExitMissing},
		{"bench --help", cli.ExitClean},
	} {
		var stdout, stderr bytes.Buffer
		a := appOn(&stdout, &stderr)
		root := a.root()
		for _, sub := range root.Commands() {
			if sub.Name() == "bench" {
				root.RemoveCommand(sub)
			}
		}
		root.AddCommand(needsLinux("bench", shortBench, whyBench))
		root.SetArgs(strings.Fields(c.args))
		err := root.ExecuteContext(t.Context())
		code := cli.ExitClean
		if err != nil {
			code = cli.ExitCode(err)
		}
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %v", c.args, code, c.code, err)
		}
		if err != nil && !strings.Contains(err.Error(), "slowpath bench needs Linux, which is missing here (") {
			t.Errorf("%s: %v", c.args, err)
		}
		if err == nil && !strings.Contains(stdout.String(), "bench needs Linux: "+whyBench) {
			t.Errorf("%s prints %s", c.args, stdout.String())
		}
	}
}
