package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"slowpath/internal/agent/metrics"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// BenchmarkScrape is a scrape of an agent that has seen 1 000 clients of 64 nodes, with all series that it can have.
func BenchmarkScrape(b *testing.B) {
	clock := &hand{}
	now := int64(1_800_000_000)
	clock.Store(now * 1e9)
	v := live.New(live.Options{Clock: clock, Slow: 5 * time.Millisecond})
	m := metrics.New(metrics.Options{View: v, Version: "test"})
	hdr := corpus.Open(b, "healthy-mixed").Histograms
	for n := range 64 {
		node := fmt.Sprintf("10.1.0.%d:6379", n)
		for i, h := range hdr[:min(len(hdr), 60)] {
			h.Source, h.Node, h.Second, h.Op = recording.SourceTap, node, now-int64(i%10), fmt.Sprintf("client OP%d", i)
			v.Histogram(h)
		}
	}
	for c := range 1000 {
		conn := fmt.Sprintf("10.2.%d.%d:5000", c/250, c%250)
		v.ConnUse(conn, recording.ConnUse{Calls: 1000})
		v.Call(recording.Call{
			Source: recording.SourceTap, Node: fmt.Sprintf("10.1.0.%d:6379", c%64), Conn: conn,
			Client: fmt.Sprintf("app%d[%d]", c, c), Op: "GET", IntendedNs: now * 1e9, EndNs: now*1e9 + 20e6,
		}, recording.Segment{Actor: recording.Server, State: recording.Busy, ToNs: 20e6})
	}
	for _, accept := range []string{"application/openmetrics-text; version=1.0.0", "text/plain"} {
		b.Run(accept[:4], func(b *testing.B) {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept", accept)
			bytes := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				m.ServeHTTP(w, r)
				bytes = w.Body.Len()
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}

// BenchmarkSecond is what the agent does each second: of one node and of 64, with 1 000 callers.
func BenchmarkSecond(b *testing.B) {
	hdr := corpus.Open(b, "healthy-mixed").Histograms[0]
	for _, nodes := range []int{1, 64} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			clock := &hand{}
			now := int64(1_800_000_000)
			clock.Store(now * 1e9)
			v := live.New(live.Options{Clock: clock, Slow: 5 * time.Millisecond})
			m := metrics.New(metrics.Options{View: v, Version: "test"})
			for c := range 1000 {
				v.ConnUse(fmt.Sprintf("10.2.%d.%d:5000", c/250, c%250), recording.ConnUse{Calls: 1000})
			}
			for b.Loop() {
				b.StopTimer()
				now++
				clock.Store(now * 1e9)
				for n := range nodes {
					h := hdr
					h.Source, h.Second, h.Op = recording.SourceTap, now, "client GET"
					h.Node = fmt.Sprintf("10.1.0.%d:6379", n)
					v.Histogram(h)
				}
				b.StartTimer()
				m.Count()
			}
		})
	}
}
