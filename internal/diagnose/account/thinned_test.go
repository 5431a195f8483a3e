package account_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// TestThinnedProbeCalls: in a recording that was thinned the histograms count the fast calls of the probe; else the
// share of slow calls would be too high.
func TestThinnedProbeCalls(t *testing.T) {
	const node, all, slow = "a:1", 1000, 5
	for _, thinned := range []bool{false, true} {
		r := recording.New()
		if thinned {
			r.SetMeta(recording.MetaThinned, "985")
		}
		h := hdrhistogram.New(1000, 1e9, 2)
		for i := range int64(all) {
			ns := int64(100_000)
			if i < slow {
				ns = 50e6
			}
			if err := h.RecordValue(ns); err != nil {
				t.Fatal(err)
			}
			if i < 3*slow || !thinned {
				r.Call(recording.Call{
					Source: recording.SourceProbe, Conn: "kept", Op: "GET", Node: node, Slot: -1,
					IntendedNs: i * 1e9, StartNs: i * 1e9, EndNs: i*1e9 + ns,
				})
			}
		}
		body, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		r.Histogram(recording.Histogram{Source: recording.SourceProbe, Node: node, Op: "kept GET", HDR: body})
		r.Index()
		l := account.Build(r)
		path, _ := l.Path(node, "kept")
		if l.Probe.Calls != all || l.Probe.Slow != slow || l.Latency.Calls != all || path.Calls != all ||
			l.Latency.P99Ns > 1e6 {
			t.Errorf("thinned %v: %d of %d calls are slow, of %d calls the p99 is %d ns, %d on the path", thinned,
				l.Probe.Slow, l.Probe.Calls, l.Latency.Calls, l.Latency.P99Ns, path.Calls)
		}
	}
}
