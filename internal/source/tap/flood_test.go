//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// slowSink takes longer for a call than a server does.
type slowSink struct {
	recording.Sink
	calls   int
	samples int // that were recorded, too
	first   chan struct{}
}

func (s *slowSink) Call(recording.Call, ...recording.Segment) {
	if s.calls++; s.calls == 1 {
		close(s.first)
	}
	for until := time.Now().Add(50 * time.Microsecond); time.Now().Before(until); {
	}
}

func (s *slowSink) Sample(recording.Sample) { s.samples++ }

// TestFlood: where reports come faster than they are written down, the source ends when it should, and counts
// meanwhile.
func TestFlood(t *testing.T) {
	bench, err := exec.LookPath("redis-benchmark")
	if err != nil {
		t.Skip("needs redis-benchmark")
	}
	port, pid := startServerPID(t, "127.0.0.1")
	sink := &slowSink{first: make(chan struct{})}
	source, rec := openTap(t, Options{
		Nodes: []Node{{
			Address: fmt.Sprintf("127.0.0.1:%d", port),
			Remote:  netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), PID: pid,
		}},
		SamplePerSecond: 1 << 30,
	})
	sink.Sink = rec
	source.Sink, source.recorder.Sink = sink, sink
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()

	limited, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	load := exec.CommandContext(limited, bench, "-p", fmt.Sprint(port), "-c", "20", "-P", "16", "-n", "100000000", "-t",
		"get", "-q")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error, 1)
	go func() { loaded <- load.Wait(); close(loaded) }()
	<-sink.first
	for full := source.ring.BufferSize() / 2; source.ring.AvailableBytes() < full; time.Sleep(time.Millisecond) {
		if limited.Err() != nil {
			cancel()
			t.Fatal("the reports did not pile up", errors.Join(<-ended, source.Close()))
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err := errors.Join(err, source.Close()); err != nil {
			t.Error(err)
		}
	case err := <-loaded:
		t.Errorf("the source goes on while there is a load, which ended: %v", err)
		<-ended
		source.Close() //nolint:errcheck // it failed already
	}
	if sink.samples == 0 {
		t.Error("nothing was counted")
	}
	stop()
	<-loaded
}
