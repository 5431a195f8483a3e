package manyhosts

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

var noon = time.Unix(1_800_000_000, 0)

// scrape is one of an agent, at a time in seconds since the begin.
type scrape struct {
	at, start int64
	value     float64
}

// stepped has what Prometheus gives for steps of a minute: the greatest value, and the earliest start.
func stepped(t interface{ Fatal(...any) }, minutes int, all []scrape) (*numbers, *scraped, measure) {
	n := newNumbers(noon, noon.Add(time.Duration(minutes)*time.Minute), time.Minute)
	greatest, start := map[int64]float64{}, map[int64]float64{}
	for _, s := range all {
		point := int64(math.Ceil(float64(s.at)/60)) * 60
		greatest[point] = max(greatest[point], s.value)
		began := float64(noon.Unix() + s.start)
		if was, ok := start[point]; !ok || began < was {
			start[point] = began
		}
	}
	for _, of := range []struct {
		name   string
		values map[int64]float64
	}{{callsTotal, greatest}, {processStart, start}} {
		var s model.SampleStream
		for point, v := range of.values {
			s.Values = append(s.Values, model.SamplePair{
				Timestamp: model.TimeFromUnix(noon.Unix() + point), Value: model.SampleValue(v),
			})
		}
		s.Metric = model.Metric{"instance": "a:1"}
		if err := n.add(family{name: of.name}, s); err != nil {
			t.Fatal(err)
		}
	}
	return n, n.sorted()[0], measure{metric: callsTotal}
}

// TestAdded: what counters grew, where their agents begin anew and are not scraped for a time.
func TestAdded(t *testing.T) {
	for name, c := range map[string]struct {
		scrapes []scrape
		want    []float64
	}{
		"grows": {[]scrape{{0, -99, 10}, {55, -99, 12}, {119, -99, 15}, {180, -99, 15}}, []float64{0, 2, 3, 0}},
		"seen later, begun before": {
			[]scrape{{70, -99, 10}, {170, -99, 15}}, []float64{0, 0, 0, 5},
		},
		"begins":          {[]scrape{{70, 65, 10}, {170, 65, 15}}, []float64{0, 0, 10, 5}},
		"without a start": {[]scrape{{0, 0, 10}, {60, 0, 3}, {120, 0, 4}}, []float64{0, 3, 1, 0}},
		"gap":             {[]scrape{{0, -99, 10}, {180, -99, 19}}, []float64{0, 0, 0, 9}},
		"anew in a step":  {[]scrape{{0, -99, 10}, {70, -99, 15}, {110, 100, 4}, {170, 100, 7}}, []float64{0, 0, 5, 7}},
		"anew between steps": {
			[]scrape{{0, -99, 10}, {115, -99, 15}, {170, 125, 40}}, []float64{0, 0, 5, 40},
		},
		// the greatest value of the step may be one of either
		"anew, and soon above": {
			[]scrape{{0, -99, 10}, {70, -99, 15}, {110, 100, 20}, {170, 100, 30}}, []float64{0, 0, 0, 30},
		},
		"the clock of the host is set": {[]scrape{{0, -999, 10}, {60, -99, 12}, {120, -99, 13}}, []float64{0, 2, 1, 0}},
		"the host is ahead":            {[]scrape{{0, 30, 10}, {60, 30, 12}, {120, 30, 13}}, []float64{0, 2, 1, 0}},
		"anew in a gap":                {[]scrape{{0, -99, 10}, {170, 130, 4}}, []float64{0, 0, 0, 4}},
	} {
		n, a, m := stepped(t, 3, c.scrapes)
		if got := n.added(a, a.series[m]); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAddedAtMost: no call is counted twice, and where the agent runs on none is lost, however it is scraped.
func TestAddedAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const minutes = 20
		restarts := rapid.Bool().Draw(t, "restarts")
		now := scrape{start: -1000, value: rapid.Float64Range(0, 100).Draw(t, "before")}
		now.value = math.Trunc(now.value)
		all, truth := []scrape{now}, -now.value // what is before the begin does not count
		for now.at < 60*minutes-20 {
			before := now.at
			now.at += rapid.Int64Range(1, 200).Draw(t, "pause")
			if restarts && now.at-before > 1 && rapid.IntRange(0, 5).Draw(t, "anew") == 0 {
				truth += now.value
				now.start, now.value = before+1, 0
			}
			now.value += float64(rapid.IntRange(0, 20).Draw(t, "calls"))
			if now.at <= 60*minutes {
				all = append(all, now)
			}
		}
		last := all[len(all)-1]
		if last.start == now.start {
			truth += last.value
		}
		n, a, m := stepped(t, minutes, all)
		sum := 0.0
		for _, v := range n.added(a, a.series[m]) {
			if sum += v; v < 0 {
				t.Fatalf("%v calls in a step", v)
			}
		}
		if sum > truth || !restarts && sum != truth {
			t.Fatalf("%v calls, want %v: %v", sum, truth, all)
		}
	})
}

// TestTook: calls of a bucket are spread evenly over the buckets of a histogram.
func TestTook(t *testing.T) {
	a := &scraped{buckets: map[string]map[int64]float64{}}
	a.tookUpTo("n", map[float64]float64{0.0001: 5, 1: 5, 2: 13, math.Inf(1): 14})
	a.took("m", bounds{1, math.Exp2(1.0 / 8)}, 7) // a native one
	sum, most := 0.0, 0.0
	for at, calls := range a.buckets["n"] {
		sum += calls
		if at >= 0 && at < 8 { // from 1 s to 2 s
			most += calls
		}
	}
	if math.Abs(sum-14) > 1e-9 || math.Abs(most-8) > 1e-9 || math.Abs(a.buckets["m"][0]-7) > 1e-9 {
		t.Errorf("%v calls, %v from 1 s to 2 s: %v", sum, most, a.buckets)
	}
}

// TestNames: hosts have the name of their instance, and what else tells agents apart where several have it. Of replicas
// that scrape the same agent one counts.
func TestNames(t *testing.T) {
	n := newNumbers(noon, noon.Add(time.Hour), time.Minute)
	for _, target := range []model.Metric{
		{"instance": "web-1:7380", "job": "a"},
		{"instance": "web-2:7380", "replica": "0"},
		{"instance": "web-2:7380", "replica": "1"},
		{"instance": "web-3:7380"},
		{"instance": "web-3:7381"},
		{"instance": "10.0.0.1:7380", "region": "eu"},
		{"instance": "10.0.0.1:7380", "region": "us"},
		{"instance": "10.0.0.1:7380", "cluster": "shop"},
		{"instance": "[fe80::1]:7380"},
		{"instance": "named"},
	} {
		target["version"] = "1.0"
		seen := []model.SamplePair{
			{Timestamp: model.TimeFromUnix(noon.Unix())}, {Timestamp: model.TimeFromUnix(noon.Unix() + 60)},
		}
		err := n.add(family{buildInfo, []string{"version"}}, model.SampleStream{Metric: target, Values: seen})
		if err != nil {
			t.Fatal(err)
		}
	}
	n.single()
	n.name()
	var got []string
	for _, a := range n.agents {
		got = append(got, strings.TrimSpace(a.cluster()+" "+a.host))
	}
	slices.Sort(got)
	if want := []string{
		"fe80::1", "named", "shop 10.0.0.1", "web-1", "web-2", "web-3:7380", "web-3:7381",
		`{instance="10.0.0.1:7380", region="eu"}`, `{instance="10.0.0.1:7380", region="us"}`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPrometheusAddress: what is no address, or would show a secret, is refused with what to write.
func TestPrometheusAddress(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "headers")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	secret := PrometheusOptions{Token: "secret"}
	plain := PrometheusOptions{Token: "secret", Plain: true}
	for source, c := range map[string]struct {
		o    PrometheusOptions
		want string
	}{
		"prometheus://h":             {want: "http://h:9090/api/v1/query_range"},
		"prometheus://h:1/select/0/": {want: "http://h:1/select/0/api/v1/query_range"},
		"prometheuss://h/prometheus": {want: "https://h/prometheus/api/v1/query_range"},
		"prometheus://":              {want: "write prometheus://HOST:9090"},
		"prometheus://h?x=1":         {want: "write prometheus://HOST:9090"},
		"prometheus://me:secret@h":   {want: "PROMETHEUS_TOKEN"},
		"prometheus://other":         {secret, "use prometheuss://, or --plain"},
		"prometheus://other-2":       {plain, "http://other-2:9090/api/v1/query_range"},
		"prometheus://127.0.0.1":     {secret, "http://127.0.0.1:9090/api/v1/query_range"},
		"prometheuss://h": {
			PrometheusOptions{Headers: file("X-Scope-OrgID: a\n")}, "https://h/api/v1/query_range",
		},
		"prometheuss://no-file":        {PrometheusOptions{Headers: "/no/file"}, "/no/file"},
		"prometheuss://no-header":      {PrometheusOptions{Headers: file("secret\n")}, "write \"Name: value\""},
		"prometheuss://no-certificate": {PrometheusOptions{CA: file("x")}, "no certificate in PEM"},
	} {
		p, err := NewPrometheus(source, c.o)
		got := fmt.Sprint(err)
		if err == nil {
			got = p.api
		}
		if !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", source, got, c.want)
		}
	}
}

// TestPrometheusReplies: what refuses, or is no Prometheus, is said with what to do, and the headers arrive.
func TestPrometheusReplies(t *testing.T) {
	for reply, want := range map[string]string{
		`200 {"status":"success","data":{"resultType":"matrix","result":[]}}`: "<nil>",
		`200 {"status":"error","error":"no"}`:                                 "(no)",
		"200 <html>":                                                          "does not answer as a Prometheus does",
		`200 {"status":"success","data":{"result":[`:                          "it does not answer as a Prometheus does",
		`401 {}`: "HTTP 401 Unauthorized: give a token in PROMETHEUS_TOKEN",
		`302 `:   "give the path before /api/v1",
		`422 {"status":"error","error":"too many"}`:  "too many: ask for less",
		`503 {"status":"error","error":"timed out"}`: "timed out: ask for less",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" || r.FormValue("query") != "up" || r.Method != "POST" {
				t.Errorf("%v %v", r.Header, r.Form)
			}
			code := 0
			_, _ = fmt.Sscan(reply, &code)
			if code == http.StatusFound {
				w.Header().Set("Location", "http://192.0.2.1/")
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(reply[4:]))
		}))
		p, err := NewPrometheus("prometheus://"+strings.TrimPrefix(server.URL, "http://"),
			PrometheusOptions{Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		err = p.ask(t.Context(), "up", noon, noon, time.Minute, func(model.SampleStream) error { return nil })
		if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, "secret") ||
			err != nil && !errors.Is(err, ErrPrometheus) {
			t.Errorf("%s: %v, want %s", reply, err, want)
		}
		p.Close()
		server.Close()
	}
}

// TestPrometheusTLS: a certificate is checked, by the file of --ca or the system.
func TestPrometheusTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	server.Config.ErrorLog = log.New(t.Output(), "", 0) // it is told of the handshake that fails
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{ca: "<nil>", "": "certificate"} {
		p, err := NewPrometheus("prometheuss://"+strings.TrimPrefix(server.URL, "https://"),
			PrometheusOptions{CA: file})
		if err != nil {
			t.Fatal(err)
		}
		err = p.ask(t.Context(), "up", noon, noon, time.Minute, func(model.SampleStream) error { return nil })
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("with %q: %v, want %s", file, err, want)
		}
		p.Close()
	}
}

// FuzzPrometheusReply: any reply is read or refused, and what is taken of it is of the time that was asked.
func FuzzPrometheusReply(f *testing.F) {
	const head = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"x","node":"a:1",` +
		`"exported_node":"b:2","instance":"h:1"},`
	f.Add([]byte(head + `"values":[[1800000000,"1"],[1800000060,"NaN"],[1e30,"+Inf"],[-1,"-Inf"]]}]}}`))
	f.Add([]byte(head + `"histograms":[[1800000000,{"count":"1","sum":"1","buckets":[[0,"1","2","1"]]}]]}]}}`))
	f.Add([]byte(`{"status":"success","data":{"result":[]},"warnings":["partial"]}`))
	f.Add([]byte(`[[[[{"status":"error"`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		n := newNumbers(noon, noon.Add(time.Hour), time.Minute)
		err := seriesOf(bytes.NewReader(reply), func(s model.SampleStream) error {
			target, own := parted(s.Metric, family{durations, []string{"node", "whose"}})
			for _, h := range s.Histograms {
				if h.Histogram == nil {
					continue
				}
				for _, b := range h.Histogram.Buckets {
					if a := n.agents[target.String()]; a != nil && b != nil {
						a.took(own["node"], bounds{float64(b.Lower), float64(b.Upper)}, float64(b.Count))
					}
				}
			}
			return n.add(family{callsTotal, []string{"node", "whose"}}, s)
		})
		if err != nil && !errors.Is(err, errReply) && !errors.Is(err, errTooMany) {
			t.Fatal(err)
		}
		n.single()
		n.name()
		for _, a := range n.sorted() {
			rows{}.counted(origin{cluster: a.cluster(), host: a.host}, n, a)
		}
	})
}
