package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricdata "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{
		Value: &common.AnyValue_StringValue{StringValue: value},
	}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func of(host string) *resource.Resource {
	return &resource.Resource{Attributes: []*common.KeyValue{
		text("host.name", host), text("host.id", "one"), text("slowpath.cluster", recordedCluster),
		text("host.ip", "198.18.77.1"),
	}}
}

// call is a push with one end of a call.
func call(t *testing.T, host, side string, seq int64, begin time.Time) push {
	sum := sha256.Sum256(fmt.Appendf(nil, "shop\n198.18.77.1:40000\n%d", seq))
	span := &trace.Span{
		TraceId: sum[:16], SpanId: sum[16:24], Name: "GET", StartTimeUnixNano: uint64(begin.UnixNano()),
		EndTimeUnixNano: uint64(begin.Add(time.Second).UnixNano()),
		Attributes: []*common.KeyValue{
			text("client.address", "198.18.77.1"), number("client.port", 40000), number("slowpath.tcp.seq", seq),
			text("slowpath.side", side), text("server.address", "198.18.77.11"),
		},
	}
	if side == "server" {
		span.SpanId, span.ParentSpanId = sum[24:], sum[16:24]
	}
	return push{At: begin.UnixNano(), Signal: traces, Body: encode(t, &tracespb.ExportTraceServiceRequest{
		ResourceSpans: []*trace.ResourceSpans{{
			Resource: of(host), ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{span}}},
		}},
	})}
}

// minute is a push with a minute of a node.
func minute(t *testing.T, host string, begin time.Time) push {
	return push{At: begin.Add(75 * time.Second).UnixNano(), Signal: metrics, Body: encode(t,
		&metricspb.ExportMetricsServiceRequest{ResourceMetrics: []*metricdata.ResourceMetrics{{
			Resource: of(host), ScopeMetrics: []*metricdata.ScopeMetrics{{Metrics: []*metricdata.Metric{{
				Name: "slowpath.minute", Data: &metricdata.Metric_ExponentialHistogram{
					ExponentialHistogram: &metricdata.ExponentialHistogram{
						DataPoints: []*metricdata.ExponentialHistogramDataPoint{{
							StartTimeUnixNano: uint64(begin.UnixNano()), Count: 7,
							Attributes: []*common.KeyValue{text("server.address", "198.18.77.11")},
						}},
					},
				},
			}}}},
		}}})}
}

// recordedPushes is a recording of two hosts: a quiet minute, and one with a call that both saw, of which one end was
// sent twice.
func recordedPushes(t *testing.T) recorded {
	path := filepath.Join(t.TempDir(), "pushes")
	w, err := createPushes(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
	for _, p := range []push{
		call(t, "web-1", "client", 1, second(-60)), minute(t, "web-1", second(-120)),
		{At: second(1).UnixNano(), Signal: incident},
		call(t, "web-1", "client", 2, second(10)),
		call(t, "redis-1", "server", 2, second(10)), call(t, "redis-1", "server", 2, second(10)),
		minute(t, "web-1", second(-60)), call(t, "redis-1", "server", 3, second(60)),
	} {
		if err := w.add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	r, err := readRecorded(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spansOf are the spans of a turn, with their hosts.
func spansOf(t *testing.T, of turn) (spans []*trace.Span, hosts []string) {
	for _, s := range of.scripts {
		if s.Signal != traces {
			continue
		}
		body, err := s.body(of.part)
		if err != nil {
			t.Fatal(err)
		}
		var m tracespb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		for _, r := range m.ResourceSpans {
			spans = append(spans, r.ScopeSpans[0].Spans...)
			hosts = append(hosts, textOf(r.Resource.Attributes, "host.name"))
		}
	}
	return spans, hosts
}

// TestReplayedCalls: both ends of a call are one trace in each part, as agents with these addresses would make it, and
// no part has the calls of another.
func TestReplayedCalls(t *testing.T) {
	r := recordedPushes(t)
	base := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for _, cell := range []int{0, 300} {
		turns := r.turns(cell, 2, base, true)
		spans, hosts := spansOf(t, turns[0])
		network := map[int]string{0: "10.0.0.", 300: "10.1.44."}[cell]
		sum := sha256.Sum256(fmt.Appendf(nil, "shop-%d\n%s1:40000\n2", cell*2/100, network))
		for i, span := range spans {
			if string(span.TraceId) != string(sum[:16]) || textOf(span.Attributes, "server.address") != network+"11" ||
				!strings.HasSuffix(hosts[i], fmt.Sprint("-", cell)) {
				t.Errorf("cell %d: %v of %s", cell, span, hosts[i])
			}
			if at := time.Unix(0, int64(span.StartTimeUnixNano)); !at.Equal(base.Add(10 * time.Second)) {
				t.Errorf("cell %d: it is at %s", cell, at)
			}
		}
		if string(spans[0].SpanId) != string(sum[16:24]) || string(spans[1].ParentSpanId) != string(sum[16:24]) ||
			string(spans[1].SpanId) != string(sum[24:]) {
			t.Errorf("cell %d: %v", cell, spans)
		}
		later, _ := spansOf(t, turns[1])
		for _, id := range []string{string(spans[0].TraceId), string(later[0].TraceId)} {
			if seen[id] {
				t.Errorf("cell %d: the trace %x is that of another call", cell, id)
			}
			seen[id] = true
		}
	}
}

// TestTallies: what was sent twice counts once, and each lap has rows of its own.
func TestTallies(t *testing.T) {
	r := recordedPushes(t)
	turns := r.turns(0, 3, time.Now(), true)
	got := tallies(turns)
	want := map[string]tally{"call_row": {4, 4e9}, "minute_row": {3, 21}}
	if len(got) != len(want) || got["call_row"] != want["call_row"] || got["minute_row"] != want["minute_row"] {
		t.Errorf("%v, want %v", got, want)
	}
	if n := pairsOf(turns); n != 1 {
		t.Errorf("%d calls of both ends, want 1", n)
	}
	all := replay{recorded: r, cells: 5, laps: 3, incidents: 2}
	if n := all.expected()["call_row"].rows; n != 3*4+2*3 {
		t.Errorf("%d calls of five cells", n)
	}
}

// TestForeignTrace: a recording whose traces are not made as agents make them is refused.
func TestForeignTrace(t *testing.T) {
	p := call(t, "web-1", "client", 1, time.Now())
	var m tracespb.ExportTraceServiceRequest
	if err := proto.Unmarshal(p.Body, &m); err != nil {
		t.Fatal(err)
	}
	m.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId[0]++
	p.Body = encode(t, &m)
	if _, err := newScript(p, map[string]callKey{}); err == nil {
		t.Error("it was read")
	}
}
