package account

import (
	"testing"

	"slowpath/internal/recording"
)

// Without the probe the percentiles are those of all calls, not of the recorded slow ones.
func TestLatencyWithoutProbe(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	r.latencies("client GET", ms(0.2), 9990)
	r.latencies("client GET", ms(20), 10)
	r.latencies("server GET", ms(0.1), 20_000)
	for i := range 10 {
		r.call("10.0.0.8:1", "client", "GET", ms(float64(i*100)), ms(float64(i*100+20)))
	}
	r.Index()
	l := Build(r.Recording)
	if l.Latency.Calls != 10_000 || l.Latency.P50Ns > ms(0.3) || l.Latency.P99Ns > ms(0.3) ||
		l.Latency.MaxNs < ms(19) || len(l.Slow) != 10 {
		t.Errorf("%+v, %d slow", l.Latency, len(l.Slow))
	}
}
