//go:build linux

package tap

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// flood is a ring buffer that is never empty: reports come faster than they are written down. Each takes a millisecond.
type flood struct {
	tapeReader
	report []byte
	now    int64
}

func (f *flood) Now() int64          { return f.now }
func (f *flood) AvailableBytes() int { return 16 << 20 }

func (f *flood) ReadInto(to *ringbuf.Record) error {
	f.now += int64(time.Millisecond)
	to.RawSample = f.report
	return nil
}

// floodSink ends the watch after so many calls.
type floodSink struct {
	*recording.Recording
	left int
	end  func()
}

func (s *floodSink) Call(c recording.Call, segs ...recording.Segment) {
	s.Recording.Call(c, segs...)
	if s.left--; s.left == 0 {
		s.end()
	}
}

// TestFlood: where reports come faster than they are written down, the watch ends when it should, and counts
// meanwhile.
func TestFlood(t *testing.T) {
	const calls = 5000
	server := netip.MustParseAddrPort("10.0.0.1:6379")
	a := kernelAddr{Role: roleServer, Lport: server.Port(), Rport: 4000, Laddr: server.Addr().As16()}
	a.Raddr = netip.MustParseAddr("10.0.0.2").As16()
	call := kernelCallEvent{Type: evCall, Role: roleServer, Number: 9, At: [4]uint64{1e9, 1e9, 1e9, 1.01e9}, Addr: a}
	f := &flood{report: bytesOf(&call), now: 10e9}
	f.tape, f.names = &tape{}, namesOfCounters(t)
	f.counters = map[string]uint64{"calls.server": 7}
	ctx, cancel := context.WithCancel(t.Context())
	sink := &floodSink{recording.New(), calls, cancel}
	tap := &Tap{
		Options: Options{Clock: f, Files: hostfs.Root{}, Sink: sink, Slow: DefaultSlow}, reports: f, counts: f,
		kernel: &loaded{counters: f.names},
	}
	tap.follows([]Node{{Address: "server", Remote: server}})
	if err := tap.Run(ctx); err != nil {
		t.Fatal(err)
	}
	most := calls + (drainBytes+f.AvailableBytes())/len(f.report) // one pass, and what there was at the end
	if n := len(sink.Calls); n < calls || n > most {
		t.Errorf("%d calls were recorded of a watch that was to end after %d, at most %d", n, calls, most)
	}
	sink.Index()
	counted := sink.Series(recording.SourceTap, recording.SubjectSelf, "tap.calls.server")
	if len(counted) == 0 || counted[0].TimeNs > 10e9+5e9 {
		t.Errorf("counted: %v", counted)
	}
}
