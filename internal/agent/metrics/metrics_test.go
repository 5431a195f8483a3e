package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// hand is a clock that is set by hand, in nanoseconds since the epoch.
type hand struct{ atomic.Int64 }

func (h *hand) Now() int64 { return h.Load() }

// replayed is the view of a recording, with a clock that stands behind its end.
func replayed(t testing.TB, scenario string) (*live.View, *recording.Recording, *hand) {
	rec := corpus.Open(t, scenario)
	rec.Index()
	_, end := rec.Window()
	clock := &hand{}
	clock.Store(end + 15e9)
	v := live.New(live.Options{Clock: clock})
	for k, value := range rec.Meta {
		v.SetMeta(k, value)
	}
	for _, e := range rec.Events {
		v.Event(e)
	}
	for _, h := range rec.Histograms {
		v.Histogram(h)
	}
	for _, c := range rec.Calls {
		v.Call(c, rec.SegmentsOf(c.ID)...)
	}
	return v, rec, clock
}

// families are what a scrape gives, by name.
func families(t testing.TB, m *metrics.Metrics) map[string]*dto.MetricFamily {
	all, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// sum adds up the series of a family whose labels have these values.
func sum(f *dto.MetricFamily, values ...string) (total float64) {
	for _, one := range f.GetMetric() {
		labels := ""
		for _, l := range one.GetLabel() {
			labels += "|" + l.GetValue() + "|"
		}
		matches := true
		for _, v := range values {
			matches = matches && strings.Contains(labels, "|"+v+"|")
		}
		if matches {
			total += one.GetCounter().GetValue() + one.GetGauge().GetValue()
			total += float64(one.GetHistogram().GetSampleCount())
		}
	}
	return total
}

var labelOf = map[live.Whose]string{live.Own: "slowpath", live.Users: "users"}

// TestCountsAreThoseOfTheView: each call of a recorded incident is counted once, however often and late it is scraped.
func TestCountsAreThoseOfTheView(t *testing.T) {
	v, rec, _ := replayed(t, "server-cfs-throttled")
	m := metrics.New(metrics.Options{View: v, Version: "test"})
	start, end := rec.Window()
	want := map[live.Whose]live.Second{}
	for _, s := range v.Seconds(start/1e9-5, end/1e9+5) {
		w := want[s.Whose]
		w.Calls, w.Slow, w.Failed = w.Calls+s.Calls, w.Slow+s.Slow, w.Failed+s.Failed
		want[s.Whose] = w
	}
	for range 3 {
		got := families(t, m)
		for whose, w := range want {
			if w.Calls == 0 {
				t.Errorf("the recording has no calls of %s", whose)
			}
			for name, n := range map[string]int64{
				"slowpath_call_duration_seconds": w.Calls, "slowpath_slow_calls_total": w.Slow,
				"slowpath_failed_calls_total": w.Failed,
			} {
				if s := sum(got[name], labelOf[whose]); s != float64(n) {
					t.Errorf("%s of %s is %v, want %d", name, whose, s, n)
				}
			}
		}
		throttled, all := sum(got["slowpath_slow_call_waited_seconds_total"], "users", "server", "throttled"),
			sum(got["slowpath_slow_call_waited_seconds_total"], "users")
		if throttled < 0.9*all || all == 0 {
			t.Errorf("%.1f s of %.1f s throttled: the verdict has 99 %%", throttled, all)
		}
		if n := sum(got["slowpath_command_calls_total"]); n != float64(want[live.Users].Calls) {
			t.Errorf("%v calls by command, want %d", n, want[live.Users].Calls)
		}
	}
}

// TestBothHistograms: the classic and the native buckets are of the same calls, and slow calls are named by exemplars.
func TestBothHistograms(t *testing.T) {
	v, _, _ := replayed(t, "server-cfs-throttled")
	m := metrics.New(metrics.Options{View: v, TraceID: func(recording.Call) string { return strings.Repeat("ab", 16) }})
	exemplars := 0
	for _, one := range families(t, m)["slowpath_call_duration_seconds"].GetMetric() {
		h := one.GetHistogram()
		native, delta := int64(0), int64(0)
		for _, d := range h.GetPositiveDelta() {
			delta += d
			native += delta
		}
		last := h.GetBucket()[len(h.GetBucket())-1].GetCumulativeCount()
		if uint64(native) != h.GetSampleCount() || last != h.GetSampleCount() || h.GetSampleSum() <= 0 {
			t.Errorf("%d calls, %d in native buckets, %d in classic ones", h.GetSampleCount(), native, last)
		}
		below := 0.0
		for _, b := range h.GetBucket() {
			if e := b.GetExemplar(); e != nil {
				exemplars++
				runes := 0
				for _, l := range e.GetLabel() {
					runes += len(l.GetName()) + len(l.GetValue())
				}
				if e.GetValue() <= below || e.GetValue() > b.GetUpperBound() || runes > 128 || len(e.GetLabel()) != 3 {
					t.Errorf("bucket %v has the exemplar %v, %d characters", b.GetUpperBound(), e, runes)
				}
			}
			below = b.GetUpperBound()
		}
	}
	if exemplars == 0 {
		t.Error("no exemplar")
	}
}

// TestFormats: a scrape is valid in all three formats; only OpenMetrics and protobuf have exemplars.
func TestFormats(t *testing.T) {
	v, _, _ := replayed(t, "server-cfs-throttled")
	m := metrics.New(metrics.Options{View: v, Version: "1.0"})
	for accept, format := range map[string]expfmt.FormatType{
		"text/plain": expfmt.TypeTextPlain, "application/openmetrics-text; version=1.0.0": expfmt.TypeOpenMetrics,
		"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited": expfmt.
			TypeProtoDelim,
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		got := expfmt.ResponseFormat(w.Header())
		body := w.Body.String()
		if format == expfmt.TypeOpenMetrics {
			if !strings.HasSuffix(body, "# EOF\n") || !strings.Contains(body, ` # {client="`) {
				t.Errorf("OpenMetrics without its end, or without an exemplar:\n%.300s", body)
			}
			continue
		}
		if got.FormatType() != format {
			t.Errorf("asked for %s, got %s", accept, w.Header().Get("Content-Type"))
		}
		decoder := expfmt.NewDecoder(w.Body, got)
		n := 0
		for ; ; n++ {
			if decoder.Decode(&dto.MetricFamily{}) != nil {
				break
			}
		}
		if n < 15 {
			t.Errorf("%s: %d families", accept, n)
		}
	}
	if problems, err := testutil.GatherAndLint(m.Gatherer()); err != nil || len(problems) > 0 {
		t.Errorf("names against the conventions: %v %v", problems, err)
	}
}

// TestCountersNeverGoBack: over a watch with many callers and commands, more than have series, no series falls, and
// what has none of its own is said.
func TestCountersNeverGoBack(t *testing.T) {
	clock := &hand{}
	now := int64(1_800_000_000)
	clock.Store(now * 1e9)
	v := live.New(live.Options{Clock: clock, Slow: 5 * time.Millisecond})
	m := metrics.New(metrics.Options{View: v, Callers: 10})
	before := map[string]float64{}
	uses := map[string]int64{}
	for at := now; at < now+1200; at++ {
		clock.Store(at * 1e9)
		busy := min(int(at-now)/300, 2) // others matter every five minutes
		for c := range 40 {
			conn := fmt.Sprintf("10.0.0.%d:5000", c)
			uses[conn]++
			if c/13 == busy {
				uses[conn] += 100
			}
			v.ConnUse(conn, recording.ConnUse{Calls: uses[conn]})
		}
		v.Call(recording.Call{
			Source: recording.SourceTap, Node: "a:1", Conn: "10.0.0.1:5000", Op: "GET\xff\n",
			IntendedNs: at * 1e9, EndNs: at*1e9 + 20e6,
		}, recording.Segment{Actor: recording.Server, State: recording.Busy, FromNs: at * 1e9, ToNs: at*1e9 + 20e6})
		if at%10 != 0 {
			continue
		}
		for name, f := range families(t, m) {
			if f.GetType() != dto.MetricType_COUNTER {
				continue
			}
			for _, one := range f.GetMetric() {
				key := name + fmt.Sprint(one.GetLabel())
				if got := one.GetCounter().GetValue(); got < before[key] {
					t.Fatalf("%s fell from %v to %v", key, before[key], got)
				}
				before[key] = one.GetCounter().GetValue()
			}
		}
	}
	got := families(t, m)
	if n := len(got["slowpath_caller_calls_total"].GetMetric()); n != 11 {
		t.Errorf("%d callers have series, want 10 and other", n)
	}
	if n := sum(got["slowpath_folded_names"], "caller"); n < 30 {
		t.Errorf("%v names are said to be folded, of 30", n)
	}
	last := 0
	for _, one := range got["slowpath_caller_calls_total"].GetMetric() {
		var n int
		if _, err := fmt.Sscanf(one.GetLabel()[0].GetValue(), "10.0.0.%d", &n); err == nil && n >= 26 && n < 39 {
			last++
		}
	}
	if last < 8 {
		t.Errorf("%d of the 10 series are of callers that matter now", last)
	}
	if s := sum(got["slowpath_slow_call_waited_seconds_total"], "busy"); s < 15 {
		t.Errorf("%v s in server busy", s)
	}
}

// TestIncidentsAreCountedOnce, with the cause of their last verdict.
func TestIncidentsAreCountedOnce(t *testing.T) {
	m := metrics.New(metrics.Options{View: live.New(live.Options{})})
	i := incidents.Incident{ID: "20261124T031207Z-1", State: incidents.StateWatching}
	m.Incident(i)
	if n := sum(families(t, m)["slowpath_incident_active"]); n != 1 {
		t.Errorf("%v active", n)
	}
	i.State, i.Cause, i.Verdict = incidents.StateJudged, "slow-command", "findings"
	m.Incident(i) // a first verdict, while it is watched
	i.Cause, i.End = "server-cfs-throttled", time.Now()
	for range 3 {
		m.Incident(i)
	}
	m.Incident(incidents.Incident{ID: "20261124T041207Z-1", State: incidents.StateFailed, End: time.Now()})
	got := families(t, m)
	if n := sum(got["slowpath_incidents_total"], "server-cfs-throttled", "findings"); n != 1 {
		t.Errorf("%v with its cause", n)
	}
	if n := sum(got["slowpath_incidents_total"]); n != 2 {
		t.Errorf("%v in all, want 2", n)
	}
	if n := sum(got["slowpath_incidents_total"], "failed"); n != 1 || sum(got["slowpath_incident_active"]) != 0 {
		t.Errorf("%v failed, or one is still active", n)
	}
}
