//go:build linux

package main

import (
	"bytes"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// TestServeFindsABurst: what is slow for two seconds is no pattern of the time that a recording has. The incident still
// has the cause, and its recording, too.
func TestServeFindsABurst(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer, needs.QuietCPU)
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
	await.Pass(15 * time.Second) // so that the burst is less than 1 % of all calls
	for range 10 {
		if _, err := r.Do(t.Context(), "DEBUG", "SLEEP", "0.02"); err != nil {
			t.Fatal(err)
		}
		await.Pass(200 * time.Millisecond)
	}
	recording := ""
	await.UntilOr(t, func() bool {
		recording = recordingWith(t, data, "slow-command")
		return recording != ""
	}, log.String)
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	out, err := exec.Command(slowpath, "doctor", recording, "--json").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(out, []byte(`"slow-command"`)) {
		t.Errorf("its recording: %v: %.600s", err, out)
	}
}
