package account

import (
	"testing"

	"slowpath/internal/recording"
)

// Neither the rate of the users' calls nor the length of their pipelines decides by how much its time counts in shares.
func TestWeights(t *testing.T) {
	build := func(users int) *Ledger {
		r := tap{base()}
		r.latencies("client GET", ms(0.1), 100_000)
		slowCall(r.Recording, ms(1000), ms(1100))
		for range users {
			r.call("10.0.0.8:1", "client", "GET", ms(2000), ms(2300))
		}
		r.Index()
		return Build(r.Recording)
	}
	share := func(l *Ledger) float64 {
		var users, all float64
		for _, a := range l.Slow {
			ns := float64(a.ExcessNs) * a.Weight
			all += ns
			if a.Call.Source == recording.SourceTap {
				users += ns
			}
		}
		if d := all/float64(l.ExcessNs) - 1; d > 1e-6 || d < -1e-6 {
			t.Errorf("the weighted excess of the calls is %v, of the ledger %d", all, l.ExcessNs)
		}
		return users / all
	}
	for _, users := range []int{1, 1000} {
		if s := share(build(users)); s < 0.74 || s > 0.76 {
			t.Errorf("%d users: share %.3f, want 3/4: 300 ms of wall time against 100 ms", users, s)
		}
	}
	// Callers that share a connection wait each for itself.
	r := tap{base()}
	r.latencies("client GET", ms(0.1), 100_000)
	for i := range 5 {
		r.call("10.0.0.8:1", "client", "GET", ms(1000+10*float64(i)), ms(1300))
	}
	r.Index()
	if l := Build(r.Recording); l.ExcessNs < ms(1390) || l.ExcessNs > ms(1400) {
		t.Errorf("five callers of one connection lost 1.4 s, not %d ns", l.ExcessNs)
	}
	// Users that call seldom count against as many calls of the probe.
	rare := tap{base()}
	rare.latencies("client GET", ms(0.1), 4)
	slowCall(rare.Recording, ms(1000), ms(1100))
	rare.call("10.0.0.8:1", "client", "GET", ms(2000), ms(2010))
	rare.Index()
	l := Build(rare.Recording)
	as := float64(l.Users.Calls) / float64(l.Probe.Calls)
	if want := 9.9 / (9.9 + 99.8*as); as > 0.1 || share(l) < want-0.01 || share(l) > want+0.01 {
		t.Errorf("%d calls of users, %d of the probe: share %.3f, want %.3f", l.Users.Calls, l.Probe.Calls, share(l),
			want)
	}
	if l := build(0); l.Slow[0].Weight != 1 || l.ExcessNs != l.Slow[0].ExcessNs {
		t.Errorf("without users nothing is weighed: %+v", l.Slow[0])
	}
}
