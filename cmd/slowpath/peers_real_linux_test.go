package main

import (
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestPasswordOfTopology: topology and topology watch send the password to no node that another one names elsewhere,
// unless -c says that all may have it. Somebody collects what is sent to the second node of a real server's map.
func TestPasswordOfTopology(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	const secret = "secret-of-all"
	s := fleettest.StartMap(t, servers.Redis7015, fleet.MapSpec{Masters: 2}, fleet.Spec{Password: secret})
	collected := fleettest.Collect(t, "127.77.0.2:6379")
	seed := fleettest.Outside(t, s.Addr)
	for _, command := range [][]string{
		{"topology", seed, "--for", "0"},
		{"topology", "watch", seed, "--for", "2s"},
		{"topology", seed, "--for", "0", "-c", "--timeout", "1s", "--call-timeout", "1s"}, // it answers nothing
		{"topology", "watch", seed, "--for", "6s", "-c"},
	} {
		before := len(collected())
		clustered := strings.Contains(strings.Join(command, " "), " -c")
		c := exec.Command(slowpath, command...)
		c.Env = append(c.Environ(), "REDISCLI_AUTH="+secret)
		out, err := c.CombinedOutput()
		if err != nil && c.ProcessState.ExitCode() != cli.ExitFindings {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
		if got := strings.Contains(collected()[before:], secret); got != clustered {
			t.Errorf("%v: the password was sent: %v: %s", command, got, out)
		}
		said := strings.Join(strings.Fields(string(out)), " ")
		if got := strings.Contains(said, "the password would be sent there"); got == clustered {
			t.Errorf("%v: it says that the password would be sent: %v: %s", command, got, out)
		}
		if got := strings.Contains(strings.ReplaceAll(said, "not-asked", "not asked"), "not asked"); got == clustered {
			t.Errorf("%v: it says that nodes were not asked: %v: %s", command, got, out)
		}
	}
}
