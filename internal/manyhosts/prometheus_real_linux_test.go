package manyhosts_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/house/prometheustest"
	"slowpath/internal/live"
	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
)

// scrapedAgent is what an agent shows to Prometheus, of calls that it is told of.
type scrapedAgent struct {
	t       *testing.T
	labels  string // of its target
	clock   atomic.Int64
	started time.Time
	view    *live.View
	metrics *metrics.Metrics
	made    map[string]int64 // calls of a connection
}

func (a *scrapedAgent) Now() int64 { return a.clock.Load() }

func startScraped(t *testing.T, labels string, at time.Time) *scrapedAgent {
	a := &scrapedAgent{t: t, labels: labels, started: at, made: map[string]int64{}}
	a.clock.Store(at.UnixNano())
	a.view = live.New(live.Options{Clock: a, Slow: 5 * time.Millisecond})
	a.metrics = metrics.New(metrics.Options{View: a.view, Version: "test"})
	return a
}

// calls has a caller make calls to a node, of which some take 41 ms and the others 0.1 ms.
func (a *scrapedAgent) calls(at time.Time, side, node, conn, client string, calls, slow int) {
	a.t.Helper()
	a.clock.Store(at.UnixNano())
	if name, pid, ok := strings.Cut(strings.TrimSuffix(client, "]"), "["); ok && a.made[conn] == 0 {
		number, err := strconv.Atoi(pid)
		if err != nil {
			a.t.Fatal(err)
		}
		a.view.Snapshot(recording.Snapshot{
			TimeNs: at.UnixNano(), Source: recording.SourceTap, Subject: recording.ConnPrefix + conn,
			Name: recording.SnapshotEnds,
			Body: recording.Detail(recording.ConnEnds{Node: node, PID: number, Comm: name}),
		})
	}
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	_ = h.RecordValues(100e3, int64(calls-slow))
	_ = h.RecordValues(41e6, int64(slow))
	hdr, err := recording.EncodeHistogram(h)
	if err != nil {
		a.t.Fatal(err)
	}
	a.view.Histogram(recording.Histogram{
		Second: at.Unix() + 1, Source: recording.SourceTap, Node: node, Op: side + " GET", HDR: hdr,
	})
	for range slow {
		a.view.Call(recording.Call{
			Source: recording.SourceTap, Conn: conn, Client: client, Op: "GET", Node: node, Side: side,
			IntendedNs: at.UnixNano(), StartNs: at.UnixNano(), EndNs: at.UnixNano() + 41e6,
		})
	}
	a.made[conn] += int64(calls)
	a.view.ConnUse(conn, recording.ConnUse{TimeNs: at.UnixNano(), Calls: a.made[conn]})
}

var sampleLine = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*?)\})? (\S+)(?: # .*)?$`)

// scrape is what a Prometheus has of the agent at a time, as promtool reads it. The process is that of the test: when
// the agent began is written in its place.
func (a *scrapedAgent) scrape(at time.Time) string {
	a.clock.Store(at.UnixNano())
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	a.metrics.ServeHTTP(w, r)
	var out strings.Builder
	for _, m := range sampleLine.FindAllStringSubmatch(w.Body.String(), -1) {
		name, labels, value := m[1], m[2], m[3]
		if name == "process_start_time_seconds" {
			value = fmt.Sprint(a.started.Unix())
		}
		if !strings.HasPrefix(name, "slowpath_") && name != "process_start_time_seconds" {
			continue
		}
		all := a.labels
		if labels != "" {
			all += "," + labels
		}
		if strings.Contains(a.labels, ",node=") { // Prometheus renames a label that the target has, too
			all = a.labels + "," + strings.ReplaceAll(labels, "node=", "exported_node=")
		}
		fmt.Fprintf(&out, "%s{%s} %s %d\n", name, strings.TrimSuffix(all, ","), value, at.Unix())
	}
	return out.String()
}

// served is a Prometheus with a history.
func served(t *testing.T, history string) *manyhosts.Prometheus {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "history")
	if err := os.WriteFile(file, []byte(history+"# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", file, dir).
		CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	address := prometheustest.Start(t, dir, map[string]string{"prometheus.yml": ""})
	p, err := manyhosts.NewPrometheus("prometheus://"+address, manyhosts.PrometheusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// inPrometheus is the answer of a Prometheus, and what is said beside it.
func inPrometheus(t *testing.T, p *manyhosts.Prometheus, question string, filter manyhosts.Filter) (manyhosts.Rows,
	string,
) {
	t.Helper()
	var said []string
	q, _ := manyhosts.QuestionOf(question)
	f, err := p.Read(t.Context(), manyhosts.PrometheusQuestion{
		Question: q, Filter: &filter, Index: filepath.Join(t.TempDir(), "fleet"),
		Say: func(line string) { said = append(said, line) }, Show: func(string, ...any) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := manyhosts.Ask(t.Context(), f, q, filter)
	if err != nil {
		t.Fatal(err)
	}
	return a.Rows, strings.Join(said, "\n")
}

// TestPrometheusHistory: a real Prometheus has an hour of agents that are scraped each 15 s: seen from both ends, begun
// anew, not scraped for a time, gone, scraped by two replicas, in two clusters with the same addresses, and with labels
// of their targets that the metrics have, too. All counts are exact.
func TestPrometheusHistory(t *testing.T) {
	needs.Real(t, prometheustest.Need)
	begin := time.Now().Add(-3 * time.Hour).Truncate(time.Hour)
	before := begin.Add(-10 * time.Minute)
	shop := func(instance string) string { return `cluster="shop",job="slowpath",instance="` + instance + `"` }
	agents := map[string]*scrapedAgent{}
	for name, labels := range map[string]string{
		"web-1": shop("10.0.0.1:7380"), "web-2": shop("10.0.0.2:7380"), "web-3": shop("10.0.0.3:7380"),
		"redis": shop("10.0.0.9:7380"),
		"mail":  `cluster="mail",job="slowpath",instance="10.0.0.1:7380"`,
		"pod":   `cluster="pods",job="slowpath",instance="10.1.0.1:7380",node="worker-1"`,
	} {
		agents[name] = startScraped(t, labels, before)
	}
	var history strings.Builder
	const redis, other = "10.0.0.9:6379", "10.0.0.8:6379"
	for at := before; at.Before(begin.Add(time.Hour)); at = at.Add(15 * time.Second) {
		minute := int(at.Sub(begin) / time.Minute)
		if at.Second() == 15 { // counted, and scraped, in the same minute
			slow := 0
			if minute >= 20 && minute < 30 {
				slow = 10
			}
			for name, conn := range map[string]string{"web-1": "10.0.0.1:4000", "web-2": "10.0.0.2:4000"} {
				agents[name].calls(at, recording.Client, redis, conn, "app[7]", 100, slow)
			}
			agents["redis"].calls(at, recording.Server, "127.0.0.1:6379", "10.0.0.1:4000", "", 100, slow/2)
			agents["redis"].calls(at, recording.Server, "127.0.0.1:6379", "10.0.0.2:4000", "", 100, slow/2)
			if minute < 30 {
				agents["web-3"].calls(at, recording.Client, other, "10.0.0.3:4000", "job.py[9]", 50, 1)
			}
			agents["mail"].calls(at, recording.Client, redis, "10.0.0.1:4000", "mail[5]", 30, 0)
			agents["pod"].calls(at, recording.Client, redis, "10.1.0.1:4000", "app[8]", 20, 0)
		}
		if minute == 35 && at.Second() == 15 {
			agents["redis"].metrics.Incident(incidents.Incident{
				ID: "1", State: incidents.StateJudged, End: at, Cause: "slow-command", Verdict: "findings",
			})
		}
		if minute == 25 && at.Second() == 0 { // it has been scraped since its last calls
			agents["web-2"] = startScraped(t, agents["web-2"].labels, at)
		}
		for _, name := range slices.Sorted(maps.Keys(agents)) {
			gone := name == "web-3" && minute >= 30
			away := name == "mail" && minute >= 40 && minute < 50
			if !gone && !away {
				text := agents[name].scrape(at)
				history.WriteString(text)
				if name == "web-1" {
					history.WriteString(strings.ReplaceAll(text, `job="slowpath"`, `job="slowpath",replica="b"`))
				}
			}
		}
	}
	p := served(t, history.String())
	filter := manyhosts.Filter{From: begin, To: begin.Add(time.Hour), Limit: 100, Step: time.Minute}

	worst, said := inPrometheus(t, p, "worst", filter)
	want := []string{
		"10.0.0.9:6379 shop 12000 200 2", "10.0.0.8:6379 shop 1500 30 1", "10.0.0.9:6379 mail 1800 0 0",
		"10.0.0.9:6379 pods 1200 0 0",
	}
	got := texts(worst, "node", "cluster", "calls", "slow", "slow_callers")
	slices.Sort(want[2:])
	slices.Sort(got[min(2, len(got)):])
	if !slices.Equal(got, want) {
		t.Errorf("worst: %q, want %q", got, want)
	}
	for _, row := range worst.Values[:1] {
		if p99 := worst.Int(row, "p99_ns"); p99 < 25e6 || p99 > 50e6 || worst.Text(row, "cause") != "slow-command" ||
			worst.Int(row, "since_unix_ns") != begin.Add(20*time.Minute).UnixNano() {
			t.Errorf("%v: %v", worst.Columns, row)
		}
	}
	if !strings.HasPrefix(said, "2 of 6 agents: not scraped during a part of this time, such as 10.0.0.1, 10.0.0.3") ||
		strings.Contains(said, "\n") {
		t.Error(said)
	}

	since, _ := inPrometheus(t, p, "since", manyhosts.Filter{
		From: begin, To: begin.Add(time.Hour), Limit: 100, Step: time.Minute, Cluster: "shop",
	})
	if len(since.Values) != 60 {
		t.Fatalf("%d minutes", len(since.Values))
	}
	for i, row := range since.Values {
		calls, slow, incidents := int64(200), int64(0), int64(0)
		if i < 30 {
			calls, slow = 250, 1
		}
		if i >= 20 && i < 30 {
			slow = 21
		}
		if i == 35 {
			incidents = 1
		}
		if at := since.Int(row, "begin_unix_ns"); at != begin.Add(time.Duration(i)*time.Minute).UnixNano() ||
			since.Int(row, "calls") != calls || since.Int(row, "slow") != slow ||
			since.Int(row, "incidents_begin") != incidents {
			t.Errorf("minute %d: %v", i, row)
		}
	}

	who, _ := inPrometheus(t, p, "who", filter)
	if got, want := texts(who, "caller", "host", "calls", "slow", "nodes", "lost_ns"), []string{
		"app[7] 10.0.0.1 6000 100 1 3600000000", "app[7] 10.0.0.2 6000 100 1 3600000000",
		"job.py[9] 10.0.0.3 1500 30 1 1080000000",
	}; !slices.Equal(got, want) {
		t.Errorf("who: %q, want %q", got, want)
	}
	filter.Cluster = "pods"
	edges, _ := inPrometheus(t, p, "edges", filter)
	if got, want := texts(edges, "caller", "host", "node", "calls"), []string{
		"app[8] 10.1.0.1 10.0.0.9:6379 1200",
	}; !slices.Equal(got, want) {
		t.Errorf("edges: %q, want %q", got, want)
	}
	if _, err := p.Read(t.Context(), manyhosts.PrometheusQuestion{
		Filter: &manyhosts.Filter{From: begin, To: begin.Add(time.Hour), Step: time.Minute, Cluster: "none"},
		Show:   func(string, ...any) {},
	}); err == nil || !strings.Contains(err.Error(), "no agent of slowpath was scraped") {
		t.Error(err)
	}
}

// texts are columns of rows.
func texts(r manyhosts.Rows, columns ...string) (out []string) {
	for _, row := range r.Values {
		var all []string
		for _, c := range columns {
			all = append(all, fmt.Sprint(row[slices.Index(r.Columns, c)]))
		}
		out = append(out, strings.Join(all, " "))
	}
	return out
}

// TestPrometheusScrapes: a real Prometheus scrapes agents, with classic histograms or with native ones alone. The calls
// are counted exactly, and p99 is known.
func TestPrometheusScrapes(t *testing.T) {
	needs.Real(t, prometheustest.Need)
	const node = "10.0.0.9:6379"
	now := time.Now()
	agents, config := []*scrapedAgent{}, "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: slowpath\n"+
		"  static_configs:\n"
	for i := range 3 {
		a := startScraped(t, "", now)
		server := httptest.NewServer(a.metrics)
		t.Cleanup(server.Close)
		config += fmt.Sprintf("  - {targets: ['%s'], labels: {instance: 'web-%d:7380', cluster: shop}}\n",
			strings.TrimPrefix(server.URL, "http://"), i)
		agents = append(agents, a)
	}
	for feature, near := range map[string][2]float64{
		"exemplar-storage": {25e6, 50e6}, "native-histograms": {37e6, 45e6},
	} {
		t.Run(feature, func(t *testing.T) {
			address := prometheustest.Start(t, t.TempDir(), map[string]string{"prometheus.yml": config},
				"--enable-feature="+feature)
			p, err := manyhosts.NewPrometheus("prometheus://"+address, manyhosts.PrometheusOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			var row []string
			made, p99 := 0, int64(0)
			ask := func() bool {
				f := manyhosts.Filter{
					From: time.Now().Add(-time.Hour), To: time.Now(), Limit: 10, Step: time.Minute, Cluster: "shop",
				}
				q, _ := manyhosts.QuestionOf("worst")
				folder, err := p.Read(t.Context(), manyhosts.PrometheusQuestion{
					Question: q, Filter: &f, Index: filepath.Join(t.TempDir(), "fleet"),
					Say: func(string) {}, Show: func(string, ...any) {},
				})
				if errors.Is(err, manyhosts.ErrNoAgents) {
					return false
				}
				if err != nil {
					t.Fatal(err)
				}
				defer folder.Close()
				a, err := manyhosts.Ask(t.Context(), folder, q, f)
				if err != nil {
					t.Fatal(err)
				}
				if row = texts(a.Rows, "node", "calls", "slow", "slow_callers"); len(row) == 1 {
					p99 = a.Rows.Int(a.Rows.Values[0], "p99_ns")
				}
				return slices.Equal(row, []string{fmt.Sprint(node, " ", made*100*3, " ", made*10*3, " 3")})
			}
			for range 2 {
				for i, a := range agents {
					at := time.Unix(0, a.Now())
					a.calls(at, recording.Client, node, fmt.Sprintf("10.0.0.%d:4000", i), "app[7]", 100, 10)
					a.clock.Add(int64(15 * time.Second))
				}
				made = int(agents[0].made["10.0.0.0:4000"] / 100)
				await.UntilOr(t, ask, func() string { return fmt.Sprint(row) })
			}
			await.UntilOr(t, func() bool {
				return ask() && float64(p99) > near[0] && float64(p99) < near[1]
			}, func() string { return fmt.Sprint(row, p99) })
		})
	}
}
