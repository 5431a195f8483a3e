package otlp_test

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"slowpath/internal/agent/otlp"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// TestBothEndsAreOneTrace: agents at both ends of a connection, of which neither knows of the other, make one trace of
// a call. The one that may send less sends calls that the other sends, too.
func TestBothEndsAreOneTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, most, fewer = 1000, 200, 50
		of := func(cluster, side, client string, perMinute int) map[string]*tracepb.Span {
			w := &watched{clock: &hand{}}
			w.clock.Store(time.Now().UnixNano())
			w.View = live.New(live.Options{Clock: w.clock})
			spans := map[string]*tracepb.Span{}
			_, _, stop := started(t, otlp.Options{
				Endpoint: inMemory(t, otlp.Files{}, intoSpans(t, spans)), View: w.View, Cluster: cluster,
				SpansPerMinute: perMinute,
			})
			for i := range calls {
				begin := w.clock.Now() - int64(30*time.Millisecond)
				w.Call(recording.Call{
					Source: recording.SourceTap, Op: "GET", Conn: fmt.Sprintf("%s:%d", client, 40000+i%20),
					Node: "10.0.0.9:6379", Side: side, Seq: uint32(i)<<22 + 7, IntendedNs: begin, StartNs: begin,
					EndNs: begin + int64(20*time.Millisecond), RequestBytes: 27, ReplyBytes: 5,
				})
			}
			stop()
			return spans
		}
		client := of("shop", recording.Client, "10.0.0.1", most)
		server := of("shop", recording.Server, "[::ffff:10.0.0.1]", fewer)
		if len(client) != most || len(server) != fewer {
			t.Fatalf("%d and %d traces were sent", len(client), len(server))
		}
		for id, s := range server {
			c := client[id]
			if c == nil || hex.EncodeToString(s.ParentSpanId) != hex.EncodeToString(c.SpanId) ||
				s.Kind != tracepb.Span_SPAN_KIND_SERVER || c.Kind != tracepb.Span_SPAN_KIND_CLIENT {
				t.Fatalf("the ends of a call are %v and %v", c, s)
			}
			if p := number(s, "slowpath.sampling.p"); p < 0.03 || p > 0.08 {
				t.Fatalf("%d of %d calls were sent, with a probability of %v", fewer, calls, p)
			}
		}
		for id := range of("another", recording.Client, "10.0.0.1", most) {
			if client[id] != nil {
				t.Fatal("calls of two clusters have one trace")
			}
		}
	})
}

func number(s *tracepb.Span, key string) float64 {
	for _, a := range s.Attributes {
		if a.Key == key {
			if v, ok := a.Value.Value.(*commonpb.AnyValue_DoubleValue); ok {
				return v.DoubleValue
			}
		}
	}
	return 0
}

// intoSpans is a collector that keeps the spans of calls by their traces.
func intoSpans(t *testing.T, spans map[string]*tracepb.Span) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		addSpans(t, b, spans)
	}
}

// addSpans keeps the spans of a request by their traces.
func addSpans(t *testing.T, body []byte, into map[string]*tracepb.Span) {
	var request collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	for _, rs := range request.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				into[hex.EncodeToString(s.TraceId)] = s
			}
		}
	}
}
