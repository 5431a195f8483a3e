package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/report/browsertest"
)

// writeIncident writes an incident as the store does, without waiting for the disk.
func writeIncident(t testing.TB, dir string, in incidents.Incident) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, in.ID)
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "incident.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPages is how long pages and documents take with 10 000 incidents.
func BenchmarkPages(b *testing.B) {
	w := newWorldIn(b, b.TempDir(), time.Now(), nil)
	o := w.options()
	o.Store = manyIncidents(b, 10_000)
	s := start(b, o)
	for _, path := range []string{
		"/", "/incidents", "/incidents?q=nothing-like-that", "/api/v1/incidents?limit=999",
		"/api/v1/overview?range=15m",
		"/api/v1/overview?range=24h", "/topology", "/api/v1/slow", "/healthz",
	} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if got := s.ask("GET", path, ""); got.code != 200 {
					b.Fatal(got.code)
				}
			}
		})
	}
}

// BenchmarkFirstWeek is the overview of seven days of eight nodes, when nothing of it was asked for before.
func BenchmarkFirstWeek(b *testing.B) {
	history, err := incidents.OpenHistory(foldertest.Open(b, b.TempDir()), "history.db", 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer history.Close()
	m := minuteOf(b, corpus.Open(b, "healthy-mixed"))
	now := time.Now().Unix() / 60 * 60
	for start := now - 7*24*3600; start < now; start += 60 {
		for n := range 8 {
			m.Start, m.Node = start, fmt.Sprintf("127.0.0.1:%d", 7000+n)
			if err := history.Add(m); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		s := start(b, web.Options{History: history})
		if got := s.ask("GET", "/api/v1/overview?range=7d", ""); got.code != 200 {
			b.Fatal(got.code)
		}
	}
}

// BenchmarkUsable is how long a browser takes until the overview can be used, with 10 000 incidents: the page with its
// list, and the heat map. It starts a browser; -benchtime 10x is enough.
func BenchmarkUsable(b *testing.B) {
	ctx := browsertest.New(b)
	w := newWorldIn(b, b.TempDir(), time.Now(), nil)
	o := w.options()
	o.Store = manyIncidents(b, 10_000)
	s := start(b, o)
	for _, c := range []struct{ path, ready string }{
		{"/?range=24h", "!!shown && !heat.hidden"}, {"/incidents", "document.readyState == 'complete'"},
	} {
		b.Run(c.path, func(b *testing.B) {
			var inPage float64
			for b.Loop() {
				p := browsertest.Open(b, ctx, s.url+c.path)
				p.Await(c.ready)
				inPage += browsertest.Eval[float64](p, "performance.now()") // since the navigation began
				p.Close()
			}
			b.ReportMetric(inPage/float64(b.N), "ms-in-page/op")
		})
	}
}
