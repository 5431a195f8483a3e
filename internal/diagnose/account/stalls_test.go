package account

import (
	"testing"

	"slowpath/internal/recording"
)

// TestStalls: slow calls that overlap are one stall, of each node; the time that their callers lost is that of each.
func TestStalls(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	r.latencies("client GET", ms(0.5), 10_000)
	for stall := range 3 {
		for caller := range 5 {
			at := ms(float64(1000*stall + caller))
			r.call("10.0.0.8:1", "client", "GET", at, at+ms(60))
		}
	}
	r.call("10.0.0.8:1", "client", "GET", ms(5000), ms(5080))
	r.Index()
	got := Build(r.Recording).Stalls()
	if want := (Stalls{Count: 4, LostNs: got.LostNs, WorstNs: ms(80)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.LostNs < ms(15*59+79) || got.LostNs > ms(15*60+80) {
		t.Errorf("callers lost %d ns", got.LostNs)
	}
}
