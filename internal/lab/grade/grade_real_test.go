package grade

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

// runWith grades a scenario whose client is a shell script, which has read its options. Doctor says swap. Where wait is
// set, it first gives the script another line, and says it once the script has ended.
func runWith(t *testing.T, script string, wait bool) Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "client")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nread line\necho ready >&2\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	options := clients.Options{
		Addresses: []string{node}, Workers: 1, Commands: []clients.Command{{Args: []string{"PING"}}},
	}
	var client *clients.Process
	sc := scenario.Scenario{ID: "swap", Cause: "swap", Make: func(ctx context.Context, l *scenario.Lab) (
		scene scenario.Scene, err error,
	) {
		client, err = l.ClientProcess(ctx, scenario.ClientSpec{Program: clients.Name(path), Options: options})
		return scenario.Scene{Target: node}, err
	}}
	return Run(t.Context(), sc, servers.Redis7015, func(context.Context, []string) (verdict.Diagnosis, error) {
		if wait {
			if err := client.Change(options); err != nil {
				t.Error(err)
			}
			<-client.Exited()
		}
		return verdict.Diagnosis{Verdict: "slow", Findings: []cause.Finding{{Cause: "swap"}}}, nil
	}, io.Discard)
}

// TestTheVerdictOutlivesTheClient: how a client ends does not change what doctor has seen before. Only a client that
// ends while doctor watches spoils the run.
func TestTheVerdictOutlivesTheClient(t *testing.T) {
	needs.Real(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, tt := range []struct {
		name, script, line string
		wait, right        bool
	}{
		{
			"late", "exec sleep 60", "\n      after the verdict, which stands: the client ", false, true,
		},
		{
			"with an error at its end", "cat >/dev/null; echo no summary >&2; exit 1",
			"ended with an error (exit status 1): no summary\n", false, true,
		},
		{"without a summary", "cat >/dev/null", "printed nothing", false, true},
		{
			"while doctor watches", "read line; echo refused >&2; exit 4",
			"FAIL  swap                         the scenario did not take place: the client ", true, false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runWith(t, tt.script, tt.wait)
			var out bytes.Buffer
			r.Line(&out)
			if r.Right() != tt.right || r.Got != "swap" || len(r.Diagnosis.Findings) != 1 {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(out.String(), tt.line) {
				t.Errorf("no %q in:\n%s", tt.line, out.String())
			}
		})
	}
}
