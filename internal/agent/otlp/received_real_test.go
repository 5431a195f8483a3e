package otlp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/report"
)

// received is OTLP as JSON, as far as the test reads it.
type received struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes attributes }
		ScopeSpans []struct{ Spans []span }
	}
	ResourceLogs []struct {
		ScopeLogs []struct{ LogRecords []event }
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name string
				Sum  struct {
					IsMonotonic bool
					DataPoints  []struct{ AsDouble float64 }
				}
				ExponentialHistogram struct {
					DataPoints []struct {
						Attributes attributes
						Count      string
						Scale      int
					}
				}
			}
		}
	}
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name, TraceState string
	Kind                                            int
	StartTimeUnixNano, EndTimeUnixNano              string
	Attributes                                      attributes
	Events                                          []struct {
		Name       string
		Attributes attributes
	}
}

// event is a log record with a name.
type event struct {
	EventName  string
	Body       struct{ StringValue string }
	Attributes attributes
}

func logsOf(all []received) (out []event) {
	for _, r := range all {
		for _, rl := range r.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				out = append(out, sl.LogRecords...)
			}
		}
	}
	return out
}

type attributes []struct {
	Key   string
	Value map[string]any
}

func (a attributes) of(key string) string {
	for _, one := range a {
		for _, v := range one.Value {
			if one.Key == key {
				return fmt.Sprint(v)
			}
		}
	}
	return ""
}

// list gives the values of an array.
func (a attributes) list(key string) (out []string) {
	for _, one := range a {
		array, _ := one.Value["arrayValue"].(map[string]any)
		values, _ := array["values"].([]any)
		for _, v := range values {
			for _, v := range v.(map[string]any) {
				if one.Key == key {
					out = append(out, fmt.Sprint(v))
				}
			}
		}
	}
	return out
}

// read gives all spans, and all messages, that the collector has written.
func (c collector) read(t *testing.T) (spans []span, all []received) {
	b, err := os.ReadFile(c.file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r received
		if json.Unmarshal([]byte(line), &r) != nil { // the last one may be half written
			continue
		}
		all = append(all, r)
		for _, rs := range r.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
	}
	return spans, all
}

// TestCollector: a real collector receives slow calls as traces, an incident with its findings, and the metrics, over
// gRPC and over HTTP, with TLS.
func TestCollector(t *testing.T) {
	needs.Real(t, needs.File("an OpenTelemetry Collector", collectors, "scripts/collector builds it"))
	for _, protocol := range []string{"grpcs", "https"} {
		t.Run(protocol, func(t *testing.T) {
			c := startCollector(t)
			address := c.grpc
			if protocol == "https" {
				address = c.http
			}
			w := newWatched(t)
			m := metrics.New(metrics.Options{View: w.View})
			to := endpoint(t, protocol+"://"+address, otlp.Files{CA: c.ca})
			e, log, stop := started(t, otlp.Options{
				Endpoint: to, View: w.View, Metrics: m.Gatherer(), Version: "test", SpansPerMinute: 500,
				Disk: judged(t, w, to),
			})
			w.again()
			stop()
			var spans []span
			var all []received
			sent, pushes, minutes, events := e.Stats()
			await.Until(t, "all was written", func() bool {
				spans, all = c.read(t)
				return len(spans) == int(sent.Sent) && pushes.Sent > 0 && countMetrics(all) > 15 && events.Sent > 0 &&
					len(logsOf(all)) == int(events.Sent) && minutes.Sent == 2
			})
			checkCalls(t, spans)
			checkIncident(t, logsOf(all))
			checkMetrics(t, all)
			if log.text() != "" {
				t.Error(log.text())
			}
			t.Logf("%d spans in %d bytes, %d push of metrics in %d bytes", sent.Sent, sent.Bytes, pushes.Sent,
				pushes.Bytes)
			t.Logf("a span is %+v", spans[0])
		})
	}
}

// judged are the files of an agent, with an incident that has the verdict of the recording that is watched, and two
// minutes, of which nothing was sent yet.
func judged(t *testing.T, w *watched, to otlp.Endpoint) *otlp.Disk {
	disk := emptyDisk(t)
	began := time.Now().Add(-time.Hour)
	cursor := fmt.Sprintf(`{"collector": %q, "incidents": %q, "minute": %d}`, to, began.Format(time.RFC3339),
		began.Unix()/60*60)
	if err := disk.Folder.Replace("otlp.json", []byte(cursor)); err != nil {
		t.Fatal(err)
	}
	d := verdict.Diagnose(w.rec, "test")
	var doc strings.Builder
	if err := report.JSON(&doc, d); err != nil {
		t.Fatal(err)
	}
	in, err := disk.Store.Begin("slow calls", "127.0.0.1:6379", d.Window.Start)
	if err == nil {
		err = disk.Store.Finish(in.ID, []byte(doc.String()))
	}
	if err != nil {
		t.Fatal(err)
	}
	addMinute(t, disk, time.Now().Add(-10*time.Minute))
	addMinute(t, disk, time.Now().Add(-9*time.Minute))
	return disk
}

// checkCalls: each slow call is one span by the semantic conventions; its parts add up to it.
func checkCalls(t *testing.T, spans []span) {
	t.Helper()
	calls, throttled := 0, 0
	for _, s := range spans {
		calls++
		if s.Kind != 3 || s.Attributes.of("db.system.name") != "redis" ||
			s.Attributes.of("db.operation.name") != s.Name || s.Attributes.of("server.address") == "" ||
			s.Attributes.of("server.port") == "" || !strings.HasPrefix(s.TraceState, "ot=th:") {
			t.Errorf("a call is %+v", s)
		}
		states, lengths := s.Attributes.list("slowpath.parts.states"), s.Attributes.list("slowpath.parts.lengths")
		culprits, sum := s.Attributes.list("slowpath.parts.culprits"), int64(0)
		for i, state := range states {
			n, _ := strconv.ParseInt(lengths[i], 10, 64)
			sum += n
			if state == "server throttled" && culprits[i] != "" {
				throttled++
			}
		}
		begin, _ := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
		if end, _ := strconv.ParseInt(s.EndTimeUnixNano, 10, 64); sum != end-begin {
			t.Errorf("the parts of %+v are %d ns, and it is %d", s, sum, end-begin)
		}
	}
	if calls == 0 || throttled == 0 {
		t.Errorf("%d calls, %d of them throttled", calls, throttled)
	}
}

func checkIncident(t *testing.T, events []event) {
	t.Helper()
	incident, finding := false, false
	for _, e := range events {
		switch e.EventName {
		case "slowpath.incident":
			incident = e.Attributes.of("slowpath.verdict") == "findings" && e.Body.StringValue != "" &&
				e.Attributes.of("slowpath.incident.version") != ""
		case "slowpath.finding":
			finding = finding || e.Attributes.of("slowpath.cause") == "server-cfs-throttled" &&
				e.Attributes.of("slowpath.fix") != ""
		}
	}
	if !incident || !finding {
		t.Errorf("events %+v", events)
	}
}

func countMetrics(all []received) (n int) {
	for _, r := range all {
		for _, rm := range r.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				n += len(sm.Metrics)
			}
		}
	}
	return n
}

func checkMetrics(t *testing.T, all []received) {
	t.Helper()
	histogram, slow := false, 0.0
	for _, r := range all {
		for _, rm := range r.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					for _, p := range m.ExponentialHistogram.DataPoints {
						histogram = histogram || p.Count != "" && p.Scale == 3 && p.Attributes.of("whose") == "users"
					}
					for _, p := range m.Sum.DataPoints {
						if m.Name == "slowpath_slow_calls_total" && m.Sum.IsMonotonic {
							slow = max(slow, p.AsDouble)
						}
					}
				}
			}
		}
	}
	if !histogram || slow < 500 {
		t.Errorf("an exponential histogram of users: %v; %v slow calls", histogram, slow)
	}
}
