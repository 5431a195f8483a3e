package cause_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

const hopProxy, hopServer = "10.0.0.1:7000", "10.0.0.1:7002"

// keptByProxy has 20 slow calls that HAProxy had read and did not answer, and how many more were counted.
func keptByProxy(missing int64) *recording.Recording {
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, fmt.Sprintf("[%q,%q]", hopProxy, hopServer))
	rec.SetMeta(recording.MetaStart, "1000000000")
	rec.SetMeta(recording.MetaEnd, "11000000000")
	rec.SetMeta(recording.MetaSlow, "5ms")
	tapUsed(rec)
	const proxyPID = 11
	for _, name := range []string{recording.SnapshotProxy, "process"} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: 1e9, Source: recording.SourceHost, Subject: hopProxy, Name: name,
			Body: recording.Detail(recording.ProcessOfNode{PID: proxyPID, Comm: "haproxy"}),
		})
	}
	for port, e := range map[int]recording.ConnEnds{1: {Node: hopProxy, PID: 99}, 2: {Node: hopServer, PID: proxyPID}} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: 2e9, Source: recording.SourceTap, Subject: fmt.Sprintf("%s10.0.0.1:%d", recording.ConnPrefix, port),
			Name: recording.SnapshotEnds, Body: recording.Detail(e),
		})
	}
	const calls, took = 20, int64(50e6)
	for i := range int64(calls) {
		at := 2e9 + i*400e6
		rec.Call(recording.Call{
			Source: recording.SourceTap, Conn: "10.0.0.1:1", Op: "GET", Node: hopProxy, Side: "both", Client: "app[99]",
			IntendedNs: at, StartNs: at, EndNs: at + took,
		}, recording.Segment{Actor: recording.Proxy, State: recording.Forward, FromNs: at, ToNs: at + took})
	}
	h := hdrhistogram.New(1, int64(60e9), 2)
	_, _ = h.RecordValues(1e5, 10_000), h.RecordValues(took, calls+missing) // within its bounds
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	rec.Histogram(recording.Histogram{Second: 1, Source: recording.SourceTap, Node: hopProxy, Op: "client GET", HDR: b})
	rec.Index()
	return rec
}

// TestHopWithMissingCalls: a call of the proxy that was slow and is not recorded may be what one of these waited for.
func TestHopWithMissingCalls(t *testing.T) {
	for missing, c := range map[int64]struct {
		said  bool
		doubt string
	}{
		0:  {true, ""},
		9:  {true, "9 more slow calls not recorded: so many of these may have waited for the next hop"},
		10: {false, ""},
	} {
		d := verdict.Diagnose(keptByProxy(missing), "test")
		i := slices.IndexFunc(d.Findings, func(f cause.Finding) bool { return f.Cause == "lb-hop" })
		if i < 0 {
			if c.said {
				t.Errorf("%d are missing: %s", missing, d.Summary)
			}
			continue
		}
		if !c.said {
			t.Errorf("%d are missing, and it is said", missing)
			continue
		}
		if f := d.Findings[i]; c.doubt != "" {
			holds(t, "doubts", texts(f.Against), c.doubt)
		}
	}
}
