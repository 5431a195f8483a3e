package profile

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"

	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// TestServerOnTheCPU: a server that runs a script is seen in it, with its callers, and in the kernel.
func TestServerOnTheCPU(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	host, port, _ := strings.Cut(s.Addr, ":")
	load := exec.CommandContext(t.Context(), "redis-cli", "-h", host, "-p", port, "-r", "-1", "EVAL",
		"for i = 1, 300000 do redis.call('PING') end", "0")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = load.Process.Kill(); _ = load.Wait() })
	sink := &locked{rec: recording.New()}
	c := clock.New()
	from := c.Now()
	cpu := LoadCPU(Options{Clock: c, Sink: sink})
	err := cpu.Start([]Process{{PID: s.PID, Node: s.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- cpu.Run(ctx) }()
	scripts := func() (n int64) {
		sink.do(func() {
			for _, p := range sink.rec.Profiles {
				read, err := stacks.Read(p.Pprof)
				if err != nil {
					t.Error(err)
					return
				}
				for _, st := range read.Stacks {
					if st.TimeNs < from || st.TimeNs > c.Now() || read.Types[1].Unit != "nanoseconds" ||
						st.Values[1] != int64(time.Second/99) {
						t.Errorf("%+v", st)
					}
					at := func(f string) int { return slices.Index(st.Frames, f) }
					if strings.HasPrefix(st.Frames[0], "redis-server") && at("main") > 0 && at("aeMain") > at("main") &&
						at("call") > at("aeMain") {
						n += st.Values[0]
					}
				}
			}
		})
		return n
	}
	await.Until(t, "samples in a script", func() bool { return scripts() > 5 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if lost := sink.rec.Series(recording.SourceProfile, recording.SubjectSelf, "cpu-clock.lost"); len(lost) == 0 {
		t.Error("lost samples are not counted")
	}
	snap, ok := sink.rec.SnapshotOf(recording.SourceProfile, sink.rec.Profiles[0].Subject,
		recording.SnapshotApplication)
	if !ok || !strings.Contains(snap.Body, s.Addr) {
		t.Errorf("%+v", snap)
	}
}
