package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestBenchAsksElsewhere: a server at an address that is no loopback one, with keys of others, is loaded only with
// --yes where nobody can be asked; their keys stay.
func TestBenchAsksElsewhere(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	at := fleettest.Outside(t, s.Addr)
	do := func(args ...string) string {
		t.Helper()
		reply, err := s.Do(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(reply)
	}
	do("SET", "theirs", "kept")
	load := []string{"bench", at, "--command", "set", "--requests", "10"}
	c := exec.CommandContext(t.Context(), slowpath, load...)
	out, _ := c.CombinedOutput()
	if c.ProcessState.ExitCode() != cli.ExitUsage || !strings.Contains(string(out), "add --yes") {
		t.Errorf("exit code %d: %s", c.ProcessState.ExitCode(), out)
	}
	if stats := do("INFO", "commandstats"); !strings.Contains(stats, "cmdstat_set:calls=1,") {
		t.Errorf("it was loaded: %s", stats)
	}
	if out, err := exec.CommandContext(t.Context(), slowpath, append(load, "--yes")...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := do("GET", "theirs") + " " + strings.Join(strings.Fields(do("RANDOMKEY")), " "); got != "kept theirs" {
		t.Errorf("what is left: %s", got)
	}
}
