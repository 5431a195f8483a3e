package watching

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"slowpath/internal/agent/door"
	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/web"
	"slowpath/internal/clock"
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/live"
	"slowpath/internal/live/accounting"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/top"
)

// TestSameNumbersEverywhere: of one watch all views have the same calls and the same worst one; the parts of a call add
// up to it, shares to the whole, and the callers' numbers to those of all.
func TestSameNumbersEverywhere(t *testing.T) {
	for _, scenario := range corpus.Some() {
		t.Run(scenario, func(t *testing.T) { sameNumbers(t, corpus.Open(t, scenario)) })
	}
}

// hands is a clock that a test sets.
type hands struct{ ns int64 }

func (h *hands) Now() int64 { return h.ns }

// sameNumbers shows a recording in all views, and compares them.
func sameNumbers(t *testing.T, rec *recording.Recording) {
	t.Helper()
	rec.Index()
	start, end := rec.Window()
	clock := &hands{start - int64(10*time.Second)}
	slow, _ := time.ParseDuration(rec.Meta[recording.MetaSlow]) // "auto" is 0
	v := live.New(live.Options{Clock: clock, Slow: slow})
	m := metrics.New(metrics.Options{View: v})
	clock.ns = end + int64(afterwards)
	replay(rec, v)
	compareViews(t, rec, v, m, clock)
}

// afterwards is how long after a watch all of its seconds are counted.
const afterwards = 20 * time.Second

// compareViews compares the verdict of a recording with a view of the same watch, which has ended.
func compareViews(t *testing.T, rec *recording.Recording, v *live.View, m *metrics.Metrics, c clock.Clock) {
	t.Helper()
	l := account.Build(rec)
	accounting.By(v, l)
	d := verdict.Diagnose(rec, "test")
	diagnosisAddsUp(t, d, slowOfCallers(l))
	textSays(t, d)
	frame := (&top.Collector{View: v, Clock: c}).Frame().Document()
	// Of several nodes a live view chooses the end for each. Old recordings count slowpath's own calls among the
	// users'.
	for _, p := range d.Populations {
		switch {
		case len(rec.Nodes()) > 1 || !rec.OwnCallsApart():
		case p.Name == account.OfUsers:
			viewsAgree(t, p, frame.UsersMinute, v, live.Users)
		case p.Name == account.OfProbe:
			viewsAgree(t, p, frame.OwnMinute, v, live.Own)
		}
	}
	metricsAddUp(t, m, v)
	callsAddUp(t, v)
}

// replay gives a view the rows of a recording.
func replay(rec *recording.Recording, v recording.Sink) {
	for k, value := range rec.Meta {
		v.SetMeta(k, value)
	}
	of := series.CallersLeastRTT
	for _, node := range rec.Nodes() {
		for _, p := range rec.Of(of, node) {
			v.Sample(recording.Sample{
				TimeNs: p.TimeNs, Source: of.Source, Subject: of.About(node), Name: of.Name, Value: p.Value,
			})
		}
	}
	for _, c := range rec.Calls {
		v.Call(c, rec.SegmentsOf(c.ID)...)
	}
	for _, h := range rec.Histograms {
		v.Histogram(h)
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			v.ConnUse(client, u)
		}
	}
	for _, e := range rec.Events {
		v.Event(e)
	}
}

// near reports whether two numbers differ by at most a share of them.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*max(math.Abs(a), math.Abs(b)) }

// slowOfCallers are the users' slow calls, without those of servers and proxies, which are no callers.
func slowOfCallers(l *account.Ledger) (calls int) {
	for _, a := range l.Slow {
		name, _, _ := strings.Cut(a.Call.Client, "[")
		if !a.IsPart() && a.Call.Source == recording.SourceTap && !caller.IsServerProcess(name) &&
			!l.IsProxyProcess(hosts.PIDOf(a.Call.Client)) {
			calls++
		}
	}
	return calls
}

// diagnosisAddsUp compares the numbers of a diagnosis with each other; callers made so many slow calls.
func diagnosisAddsUp(t *testing.T, d verdict.Diagnosis, ofCallers int) {
	t.Helper()
	slow, recorded := 0, 0
	longest, users := int64(0), verdict.Population{}
	for _, p := range d.Populations {
		slow, recorded, longest = slow+p.SlowCalls, recorded+p.RecordedSlowCalls, max(longest, p.MaxNs)
		if p.Name == account.OfUsers {
			users = p
		}
		if p.SlowCalls > p.Calls || p.RecordedSlowCalls > p.SlowCalls || p.P50Ns > p.P99Ns || p.P99Ns > p.P999Ns ||
			p.P999Ns > p.MaxNs {
			t.Errorf("%+v", p)
		}
		threshold := d.Latency.SlowThresholdNs
		if p.Name == account.OfProbe {
			threshold = max(threshold, d.Latency.FreshSlowThresholdNs)
		}
		if p.SlowCalls == 0 && p.MaxNs > threshold {
			t.Errorf("none of %s is slow, with a worst of %d ns, and slow from %d ns on", p.Name, p.MaxNs, threshold)
		}
	}
	if slow != d.Latency.SlowCalls {
		t.Errorf("%d slow calls of all populations, %d in all", slow, d.Latency.SlowCalls)
	}
	for i, w := range d.Worst {
		took := int64(0)
		for k, p := range w.Segments {
			took += p.ToNs - p.FromNs
			if k > 0 && p.FromNs != w.Segments[k-1].ToNs {
				t.Errorf("segment %d of worst call %d begins at %d, after %d", k, i, p.FromNs, w.Segments[k-1].ToNs)
			}
		}
		if took != w.Ns {
			t.Errorf("the parts of a call of %d ns add up to %d ns", w.Ns, took)
		}
		if w.Ns-w.OwnDelayNs > longest {
			t.Errorf("a call of %d ns above the slowest, %d ns", w.Ns-w.OwnDelayNs, longest)
		}
	}
	share := 0.0
	for _, s := range d.Account {
		share += s.Share
	}
	if len(d.Account) > 0 && math.Abs(share-1) > 1e-9 {
		t.Errorf("the shares of the account are %v", share)
	}
	lost := int64(0)
	for _, c := range d.LostTime.Causes {
		if c.Because == "" {
			lost += c.Ns
		}
	}
	if !near(float64(lost), float64(d.Excess.Ns), 1e-6) {
		t.Errorf("causes explain %d ns, and %d ns were lost", lost, d.Excess.Ns)
	}
	called := 0
	for _, c := range d.Callers {
		called += c.SlowCalls
	}
	if called != ofCallers || called > users.RecordedSlowCalls {
		t.Errorf("callers have %d slow calls, of %d, and %d of users", called, ofCallers, users.RecordedSlowCalls)
	}
}

// textSays: the text has the numbers of the document.
func textSays(t *testing.T, d verdict.Diagnosis) {
	t.Helper()
	var out bytes.Buffer
	if err := report.Text(&out, d, layout.Style{Width: 400, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Populations {
		says := fmt.Sprintf("%s of %s slow", format.Thousands(p.SlowCalls), format.Thousands(p.Calls))
		if p.SlowCalls == 0 {
			says = fmt.Sprintf("none of %s slow", format.Thousands(p.Calls))
		}
		worst := "worst " + format.Duration(p.MaxNs)
		if d.Verdict == verdict.Findings && p.Name != account.OfSlowlog && (!strings.Contains(out.String(), says) ||
			p.MaxNs > 0 && !strings.Contains(out.String(), worst)) {
			t.Errorf("the text has neither %q nor %q: %s", says, worst, out.String()[:600])
		}
	}
}

// viewsAgree: the live numbers of all calls are those of the verdict.
func viewsAgree(t *testing.T, p verdict.Population, minute top.Numbers, v *live.View, whose live.Whose) {
	t.Helper()
	sum, worst := top.Numbers{}, int64(0)
	end := v.Complete()
	for _, s := range v.Seconds(end-60, end) {
		if s.Whose == whose {
			sum.Calls, sum.Slow, worst = sum.Calls+s.Calls, sum.Slow+s.Slow, max(worst, s.Latencies.MaxNs())
		}
	}
	if minute.Calls != sum.Calls || minute.Slow != sum.Slow || minute.MaxNs != worst {
		t.Errorf("top has %+v, and its seconds %+v with a worst of %d ns", minute, sum, worst)
	}
	// Recordings have histograms of whole seconds at both ends: of a few calls the one end was seen alone.
	const few = 0.005
	if !near(float64(sum.Calls), float64(p.Calls), few) {
		t.Errorf("%s: %d calls in the last minute, and %d in the verdict", p.Name, sum.Calls, p.Calls)
	}
	// Of calls in the step of a histogram in which the threshold is, the recorded ones are known to be slow.
	if diff := math.Abs(float64(sum.Slow - int64(p.SlowCalls))); diff > 3+0.02*float64(p.SlowCalls) {
		t.Errorf("%s: %d slow calls in the last minute, and %d in the verdict", p.Name, sum.Slow, p.SlowCalls)
	}
	if p.SlowCalls > 0 && !near(float64(worst), float64(p.MaxNs), 0.01) {
		t.Errorf("%s: the worst took %d ns in the last minute, and %d in the verdict", p.Name, worst, p.MaxNs)
	}
}

// metricsAddUp: the metrics have the calls of the seconds, and names add up to them.
func metricsAddUp(t *testing.T, m *metrics.Metrics, v *live.View) {
	t.Helper()
	all, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range all {
		for _, one := range f.GetMetric() {
			if one.GetCounter() != nil && ofUsers(one) {
				sums[f.GetName()] += one.GetCounter().GetValue()
			}
		}
	}
	var calls, slow int64
	for _, s := range v.Seconds(0, v.Complete()) {
		if s.Whose == live.Users {
			calls, slow = calls+s.Calls, slow+s.Slow
		}
	}
	waited, recorded := int64(0), 0
	for _, c := range v.Slow(1 << 20) {
		if c.Whose == live.Users {
			waited, recorded = waited+c.Call.EndNs-c.Call.IntendedNs, recorded+1
		}
	}
	if sums["slowpath_slow_calls_without_parts_total"] > 0 {
		return // more came at once than a view keeps
	}
	for name, want := range map[string]float64{
		"slowpath_calls_total": float64(calls), "slowpath_command_calls_total": float64(calls),
		"slowpath_slow_calls_total": float64(slow), "slowpath_command_slow_calls_total": float64(slow),
		"slowpath_caller_slow_calls_total":        float64(recorded),
		"slowpath_slow_call_waited_seconds_total": float64(waited) / 1e9,
		"slowpath_caller_slow_call_seconds_total": float64(waited) / 1e9,
	} {
		if !near(sums[name], want, 1e-6) {
			t.Errorf("%s is %v, want %v", name, sums[name], want)
		}
	}
	// Connections tell what they were used for at other times than the calls of a node are counted.
	if len(v.Nodes()) == 1 && sums["slowpath_caller_calls_total"] > 1.01*sums["slowpath_calls_total"] {
		t.Errorf("callers made %v calls, of %v", sums["slowpath_caller_calls_total"], sums["slowpath_calls_total"])
	}
}

// ofUsers leaves out what is slowpath's own.
func ofUsers(one *dto.Metric) bool {
	for _, l := range one.GetLabel() {
		if l.GetName() == "whose" && l.GetValue() != "users" {
			return false
		}
	}
	return true
}

// asked is what the page of an agent answers.
func asked(t *testing.T, s *web.Server, path string) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(door.From, "127.0.0.1:1")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// callsAddUp: the parts of each slow call that the page shows add up to it.
func callsAddUp(t *testing.T, v *live.View) {
	t.Helper()
	store, err := incidents.Open(foldertest.Open(t, t.TempDir()), incidents.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.New(web.Options{
		Listen: "127.0.0.1:0", View: v, Store: store, Health: func() web.Health { return web.Health{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	var document web.SlowCalls
	if text := asked(t, s, "/api/v1/slow?limit=1000"); json.Unmarshal(text, &document) != nil {
		t.Fatalf("no document: %s", text)
	}
	for _, c := range document.Calls {
		took := int64(0)
		for _, p := range c.Segments {
			took += p.ToNs - p.FromNs
		}
		if took != c.Ns {
			t.Errorf("the parts of call %d of %d ns add up to %d ns", c.Number, c.Ns, took)
		}
	}
}
