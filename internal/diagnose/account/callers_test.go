package account

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// With a process filter, the histograms, which hold the calls of other processes too, do not say how many of the
// selected processes' calls were slow.
func TestOnlySomeProcesses(t *testing.T) {
	r := tap{recording.New()}
	r.SetMeta(recording.MetaTarget, node)
	filter := recording.SelectedCalls{Only: "--pid 7", Calls: 400, Matched: 4, Others: 96}
	r.SetMeta(recording.MetaProcessFilter, recording.Detail(filter))
	r.latencies("client GET", ms(0.2), 9900)
	r.latencies("client GET", ms(20), 100)
	for i := range 4 {
		r.call("10.0.0.8:1", "client", "GET", ms(float64(i*100)), ms(float64(i*100+20)))
	}
	r.Index()
	if u := Build(r.Recording).Users; u.Calls != 400 || u.Slow != 4 || u.Recorded != 4 || u.TotalNs <= 0 {
		t.Errorf("%+v", u)
	}
}

// loadRecording has a load of 1 000 calls of 0.1 ms and ten of 50 ms, one of which was recorded; during that one the
// host saw the server throttled.
func loadRecording(t *testing.T, at string) *recording.Recording {
	t.Helper()
	h := hdrhistogram.New(1, int64(time.Hour), 3)
	_ = h.RecordValues(int64(ms(0.1)), 1000)
	_ = h.RecordValues(int64(ms(50)), 10)
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	r := recording.New()
	r.SetMeta(recording.MetaTarget, at)
	r.Histogram(recording.Histogram{
		Source: recording.SourceLoad, Node: at, Op: recording.LoadFromIntended + " GET",
		HDR: b,
	})
	r.Histogram(recording.Histogram{
		Source: recording.SourceLoad, Node: at, Op: recording.LoadFromSend + " GET",
		HDR: b,
	})
	r.Call(recording.Call{
		Source: recording.SourceLoad, Conn: recording.ConnLoad, Op: "GET", Node: at,
		IntendedNs: ms(1000), StartNs: ms(1040), EndNs: ms(1050),
	})
	r.Call(recording.Call{
		Source: recording.SourceLoad, Conn: recording.ConnLoad, Op: "GET", Node: at,
		IntendedNs: ms(2000), StartNs: ms(2000), EndNs: ms(2000.1),
	})
	r.Event(recording.Event{
		TimeNs: ms(1005), DurationNs: ms(40), Source: recording.SourceHost, Subject: at,
		Kind:   recording.KindThrottled,
		Detail: recording.Detail(recording.ThreadDetail{Share: 1, Cgroup: "/redis"}),
	})
	r.Index()
	return r
}

// TestLoad: a load's calls are accounted for as slowpath's own; the baseline, and how many were slow, comes from its
// histograms.
func TestLoad(t *testing.T) {
	const at = "10.0.0.1:6379"
	l := Build(loadRecording(t, at))
	if l.Latency.Calls != 1010 || l.Probe.Calls != 1010 || l.Probe.Slow != 10 || l.Probe.Recorded != 1 ||
		l.Users.Calls != 0 {
		t.Errorf("latency %+v, own %+v, users %+v", l.Latency, l.Probe, l.Users)
	}
	if len(l.Slow) != 1 {
		t.Fatalf("%d accounts", len(l.Slow))
	}
	a := l.Slow[0]
	if a.BaselineNs < ms(0.09) || a.BaselineNs > ms(0.11) || a.In(Server, Throttled) != ms(40) {
		t.Errorf("baseline %d, segments %+v", a.BaselineNs, a.Segments)
	}
}

// TestLoadIsNoUser: the calls of a load that the tap saw at the server are not those of its users.
func TestLoadIsNoUser(t *testing.T) {
	const at = "10.0.0.1:6379"
	for name, c := range map[string]struct{ server, users int64 }{"only the load": {1015, 0}, "others too": {
		3010,
		2000,
	}} {
		r := loadRecording(t, at)
		h := hdrhistogram.New(1, int64(time.Hour), 3)
		_ = h.RecordValues(int64(ms(0.05)), c.server)
		b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		r.Histogram(recording.Histogram{Source: recording.SourceTap, Node: at, Op: "server GET", HDR: b})
		if l := Build(r); int64(l.Users.Calls) != c.users {
			t.Errorf("%s: %d calls of users, want %d", name, l.Users.Calls, c.users)
		}
	}
}
