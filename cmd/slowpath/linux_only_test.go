package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestNeedsLinux: where Linux is missing, a command says so whatever its flags, and has its help all the same.
func TestNeedsLinux(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"bench 127.0.0.1:6379 --rate 5000/s -c", exitMissing},
		{"bench", exitMissing},
		{"bench --help", exitClean},
	} {
		var stdout, stderr bytes.Buffer
		a := &app{
			stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
			env: func(string) string { return "" },
		}
		root := a.root()
		for _, sub := range root.Commands() {
			if sub.Name() == "bench" {
				root.RemoveCommand(sub)
			}
		}
		root.AddCommand(needsLinux("bench", shortBench, whyBench))
		root.SetArgs(strings.Fields(c.args))
		err := root.ExecuteContext(t.Context())
		code := exitClean
		if err != nil {
			code = exitCode(err)
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
