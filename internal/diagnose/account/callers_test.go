package account

import (
	"testing"

	"slowpath/internal/recording"
)

// A call that both ends recorded, and one that SLOWLOG has too, is one call.
func TestCallsCountOnce(t *testing.T) {
	r := tap{base()}
	r.latencies("client KEYS", ms(50), 2)
	r.latencies("client GET", ms(0.1), 1000)
	r.work(ms(1005), ms(1055), recording.WorkDetail{Op: "KEYS", Calls: 1, Client: caller})
	r.call(caller, "client", "KEYS", ms(1000), ms(1060), recording.Segment{
		Actor: Nobody, State: Unexplained,
		FromNs: ms(1000), ToNs: ms(1060),
	})
	r.call(caller, "server", "KEYS", ms(1004), ms(1056), recording.Segment{
		Actor: Server, State: Exec, FromNs: ms(1004),
		ToNs: ms(1056),
	})
	slowlog(r.Recording, "KEYS", ms(1000), ms(50))
	// SLOWLOG of the helper names the connection 10.0.0.7:1, as caller does.
	l, a := only(t, r.Recording)
	if a.Call.Side != "client" || l.Users.Told != 1 || l.Users.Slow != 2 || l.Users.Calls != 1002 || l.Probe.Slow != 0 {
		t.Errorf("%+v users %+v probe %+v", a.Call, l.Users, l.Probe)
	}
	if a.In(Server, Busy) != ms(50) || a.ExcessNs < ms(59) {
		t.Errorf("the usual of a command that is always slow is what the path can do: excess %d, %+v", a.ExcessNs,
			a.Segments)
	}
}

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

// Neither the rate of the users' calls nor the length of their pipelines decides what a share is a share of.
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
	if l := build(0); l.Slow[0].Weight != 1 || l.ExcessNs != l.Slow[0].ExcessNs {
		t.Errorf("without users nothing is weighed: %+v", l.Slow[0])
	}
}

// Where only some processes' calls were asked for, the histograms, which hold those of the others too, do not say how
// many of them were slow.
func TestOnlySomeProcesses(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	r.SetMeta(recording.MetaProcessFilter, recording.Detail(recording.Whom{Only: "--pid 7", Calls: 400, Matched: 4, Others: 96}))
	r.latencies("client GET", ms(0.2), 9900)
	r.latencies("client GET", ms(20), 100)
	for i := range 4 {
		r.call("10.0.0.8:1", "client", "GET", ms(float64(i*100)), ms(float64(i*100+20)))
	}
	r.Index()
	if u := Build(r.Recording).Users; u.Calls != 400 || u.Slow != 4 || u.Told != 4 || u.TotalNs <= 0 {
		t.Errorf("%+v", u)
	}
}
