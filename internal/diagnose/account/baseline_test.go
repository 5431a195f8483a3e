package account

import (
	"testing"

	"slowpath/internal/recording"
)

// The median hides a system in which most calls are slow: then the fastest call is the baseline.
func TestBaselineOfASlowSystem(t *testing.T) {
	r := recording.New()
	r.SetMeta(recording.MetaTarget, node)
	for i := range 100 {
		at, d := ms(float64(i*100)), ms(60)
		if i < 10 {
			d = ms(0.2)
		}
		slowCall(r, at, at+d)
	}
	r.Index()
	l := Build(r)
	if len(l.Slow) != 90 || l.Slow[0].BaselineNs != ms(0.2) {
		t.Errorf("%d slow calls with baseline %d ns", len(l.Slow), l.Slow[0].BaselineNs)
	}
}

// Distance alone makes no call slow.
func TestDistanceIsNotSlow(t *testing.T) {
	r := recording.New()
	r.SetMeta(recording.MetaTarget, node)
	for i := range 100 {
		at := ms(float64(i * 100))
		slowCall(r, at, at+ms(40))
	}
	r.Index()
	if l := Build(r); len(l.Slow) != 0 || l.ThresholdNs != ms(120) {
		t.Errorf("%d slow calls at threshold %d", len(l.Slow), l.ThresholdNs)
	}
}

// In the recording of an incident all calls can be slow: what was usual before it is the baseline, and no distance.
func TestBaselineBeforeAnIncident(t *testing.T) {
	incident := func(before bool) *Ledger {
		r := tap{recording.New()}
		r.SetMeta(recording.MetaTarget, node)
		r.latencies("client GET", ms(40), 100)
		if before {
			r.latenciesOf(recording.Before(recording.SourceTap), "client GET", ms(0.5), 900)
			r.latenciesOf(recording.Before(recording.SourceProbe), "kept GET", ms(0.5), 60)
		}
		for i := range 100 {
			at := ms(float64(i * 100))
			r.call("10.0.0.8:1", "client", "GET", at, at+ms(40))
			slowCall(r.Recording, at, at+ms(40))
		}
		r.Index()
		return Build(r.Recording)
	}
	if l := incident(false); len(l.Slow) != 0 {
		t.Errorf("without a time before it %d calls are slow", len(l.Slow))
	}
	l := incident(true)
	if len(l.Slow) != 200 || l.ThresholdNs != ms(5) {
		t.Fatalf("%d slow calls from %d ns on", len(l.Slow), l.ThresholdNs)
	}
	for _, a := range l.Slow {
		if a.BaselineNs < ms(0.4) || a.BaselineNs > ms(0.6) {
			t.Errorf("the baseline of a call of the %s is %d ns", a.Call.Source, a.BaselineNs)
		}
	}
	if l.Latency.P50Ns < ms(39) {
		t.Errorf("calls before the incident count as its own: the median is %d ns", l.Latency.P50Ns)
	}
}

// A call on a new connection takes the round trips of its handshake, too: it is slow later than others, which are not
// slow later because of it.
func TestEachPathHasItsThreshold(t *testing.T) {
	r := recording.New()
	r.SetMeta(recording.MetaTarget, node)
	call := func(at, ns int64, conn string) {
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: conn, Op: "GET", Node: node, IntendedNs: at,
			StartNs: at, EndNs: at + ns,
		})
	}
	for i := range 100 {
		at := ms(float64(i * 100))
		call(at, ms(9), "kept")
		call(at, ms(27), "fresh")
	}
	call(ms(20_000), ms(30), "kept")
	call(ms(20_000), ms(60), "fresh")
	call(ms(21_000), ms(90), "fresh")
	r.Index()
	l := Build(r)
	if l.ThresholdNs != ms(27) || len(l.Slow) != 2 || l.Slow[0].Call.Conn != "kept" ||
		l.Slow[1].DurationNs() != ms(90) {
		t.Errorf("threshold %d, slow: %+v", l.ThresholdNs, l.Slow)
	}
}
