package recording_test

import (
	"path/filepath"
	"testing"

	"slowpath/internal/recording"
)

// TestEarlier: rows of the time before a recording are apart from its own, in memory and in a file, and can be read as
// one with them.
func TestEarlier(t *testing.T) {
	const node = "10.0.0.1:6379"
	fill := func(s recording.Sink) {
		s.SetMeta(recording.MetaStart, "60000000000")
		s.SetMeta(recording.MetaEnd, "70000000000")
		s.SetMeta(recording.MetaNodes, recording.Detail([]string{node}))
		for ns, source := range map[int64]string{
			10e9: recording.Before(recording.SourceServer), 65e9: recording.SourceServer,
		} {
			s.Sample(recording.Sample{TimeNs: ns, Source: source, Subject: node, Name: "maxmemory", Value: float64(ns)})
			s.Snapshot(recording.Snapshot{TimeNs: ns, Source: source, Subject: node, Name: "config", Body: "{}"})
			s.Event(recording.Event{TimeNs: ns, Source: source, Subject: node, Kind: "fork"})
			s.Histogram(recording.Histogram{Second: ns / 1e9, Source: source, Node: node, Op: "kept GET"})
		}
	}
	check := func(what string, r *recording.Recording, startNs int64, rows, histograms int) {
		t.Helper()
		if r == nil {
			t.Fatalf("%s: there is none", what)
		}
		if start, _ := r.Window(); start != startNs || len(r.Nodes()) != 1 {
			t.Errorf("%s: it begins at %d, nodes %v", what, start, r.Nodes())
		}
		for kind, n := range map[string]int{
			"samples":   len(r.Series(recording.SourceServer, node, "maxmemory")),
			"snapshots": len(r.Snapshots), "events": len(r.EventsOf(recording.SourceServer, node, "fork")),
		} {
			if n != rows {
				t.Errorf("%s: %d %s, want %d", what, n, kind, rows)
			}
		}
		if len(r.Histograms) != histograms {
			t.Errorf("%s: %d histograms, want %d", what, len(r.Histograms), histograms)
		}
	}
	inMemory := recording.New()
	fill(inMemory)
	inMemory.Index()
	path := filepath.Join(t.TempDir(), "incident.slowpath")
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]*recording.Recording{
		"in memory": inMemory, "read": read, "a part": read.Without(),
	} {
		check(what, r, 60e9, 1, 1)
		check(what+", earlier", r.Earlier(), 10e9, 1, 1)
		check(what+", with it", r.WithEarlier(), 10e9, 2, 1)
	}
	if other := recording.New(); other.WithEarlier() != other || other.Earlier() != nil {
		t.Error("a recording without that time has it")
	}
}
