package account

import (
	"testing"

	"slowpath/internal/recording"
)

// population is the one of a name, which must be there.
func population(t *testing.T, l *Ledger, name string) Population {
	t.Helper()
	for _, p := range l.Populations {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no population %s in %+v", name, l.Populations)
	return Population{}
}

// TestUsersAreTimedAtTheirEnd: a client that stands still is slow at its end alone. The server's end has a few calls
// more; only where it has most of them they are timed there.
func TestUsersAreTimedAtTheirEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		fromServer   int64
		side         string
		calls        int
		p99Ns, maxNs int64 // at least
	}{
		"both ends":          {10_005, recording.Client, 10_005, ms(19), ms(20)},
		"most at the server": {90_000, recording.Server, 90_000, ms(0.09), ms(20)},
	} {
		r := tap{recording.New()}
		r.SetMeta(recording.MetaTarget, node)
		r.latencies("client GET", ms(0.2), 9800)
		r.latencies("client GET", ms(20), 200)
		r.latencies("server GET", ms(0.1), tt.fromServer)
		for i := range 200 {
			r.call("10.0.0.8:1", "client", "GET", ms(float64(i*30)), ms(float64(i*30+20)))
		}
		r.Index()
		p := population(t, Build(r.Recording), OfUsers)
		if p.Side != tt.side || p.Calls != tt.calls || p.Slow != 200 || p.Recorded != 200 || p.P99Ns < tt.p99Ns ||
			p.P99Ns > tt.p99Ns*3/2 || p.MaxNs != tt.maxNs {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestWithoutProbe: what slowpath did not do has no numbers.
func TestWithoutProbe(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	r.latencies("client GET", ms(0.2), 1000)
	r.Index()
	l := Build(r.Recording)
	p := population(t, l, OfUsers)
	if len(l.Populations) != 1 || p.Calls != 1000 || p.Slow != 0 || p.P50Ns < ms(0.19) || p.MaxNs > ms(0.21) {
		t.Errorf("%+v", l.Populations)
	}
}

// TestPopulationsOfSlowpath: the probe's calls have no numbers of others, and none of slowpath's own delay.
func TestPopulationsOfSlowpath(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	r.latencies("client GET", ms(0.2), 1000)
	for i := range 200 {
		at := ms(float64(i * 100))
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: at, StartNs: at,
			EndNs: at + ms(0.3),
		})
	}
	at := ms(50_000)
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: at, StartNs: at,
		EndNs: at + ms(40),
	}, recording.Segment{Actor: Client, State: RunQueue, FromNs: at, ToNs: at + ms(10)})
	r.Index()
	l := Build(r.Recording)
	if p := population(t, l, OfProbe); p.Calls != 201 || p.Slow != 1 || p.P50Ns != ms(0.3) || p.MaxNs != ms(30) {
		t.Errorf("%+v", p)
	}
	if p := population(t, l, OfUsers); p.Slow != 0 || p.MaxNs > ms(0.21) {
		t.Errorf("%+v", p)
	}
	if len(l.Slow) != 1 || l.Slow[0].FeltNs() != ms(30) || l.Slow[0].DurationNs() != ms(40) {
		t.Errorf("%+v", l.Slow)
	}
}

// TestPopulationOfLoad: the calls of a load are not the users', although the tap sees them, too.
func TestPopulationOfLoad(t *testing.T) {
	l := Build(loadRecording(t, "10.0.0.1:6379"))
	p := population(t, l, OfLoad)
	if len(l.Populations) != 1 || p.Calls != 1010 || p.Slow != 10 || p.Recorded != 1 || p.P50Ns > ms(0.11) ||
		p.MaxNs != ms(50) {
		t.Errorf("%+v", l.Populations)
	}
}

// TestSelectedPopulation: the histograms hold the calls of other processes, too, and say nothing of the selected ones.
func TestSelectedPopulation(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	filter := recording.SelectedCalls{Only: "--pid 7", Calls: 400, Matched: 1, Others: 96}
	r.SetMeta(recording.MetaProcessFilter, recording.Detail(filter))
	r.latencies("client GET", ms(0.2), 9900)
	r.latencies("client GET", ms(90), 100)
	r.call("10.0.0.8:1", "client", "GET", ms(0), ms(20))
	r.Index()
	p := population(t, Build(r.Recording), OfUsers)
	if p.Calls != 400 || p.Slow != 1 || p.P99Ns != 0 || p.MaxNs != ms(20) {
		t.Errorf("%+v", p)
	}
}
