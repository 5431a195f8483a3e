package ring_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// TestCutOfNodes: of the other nodes that are watched nothing is in a cut, and neither its target nor its nodes are
// theirs; what is of no single node is there.
func TestCutOfNodes(t *testing.T) {
	const other = "10.0.0.9:6379"
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs))
	for k, v := range recording.NodeMetas([]string{other, node}, map[string]recording.NodeServer{
		other: {Server: "redis 7.0.15", Kind: "cluster"}, node: {Server: "valkey 8.1.3", Kind: "standalone"},
	}) {
		r.SetMeta(k, v)
	}
	for i := range int64(100) {
		ns := startNs + i*1e8
		c.ns.Store(ns)
		for _, of := range []string{node, other} {
			one := call(ns)
			one.Node = of
			r.Call(one)
			r.Histogram(recording.Histogram{Second: ns / 1e9, Source: recording.SourceProbe, Node: of, Op: "kept GET"})
			r.Sample(recording.Sample{
				TimeNs: ns, Source: recording.SourceServer, Subject: of, Name: "used_memory", Value: float64(i),
			})
			r.Event(recording.Event{TimeNs: ns, Source: recording.SourceServer, Subject: of, Kind: "fork"})
			r.Snapshot(recording.Snapshot{TimeNs: ns, Source: recording.SourceServer, Subject: of, Name: "config"})
		}
		r.Sample(recording.Sample{TimeNs: ns, Source: recording.SourceHost, Subject: "host", Name: "load", Value: 1})
	}
	rec := cut(t, r, ring.Cut{From: time.Unix(0, startNs+2e9), To: time.Unix(0, startNs+8e9), Nodes: []string{node}})
	if got := rec.Nodes(); len(got) != 1 || got[0] != node || rec.Meta[recording.MetaTarget] != node {
		t.Errorf("it is of %v, its target is %s", got, rec.Meta[recording.MetaTarget])
	}
	if rec.Meta[recording.MetaServer] != "valkey 8.1.3" || rec.Meta[recording.MetaKind] != "standalone" ||
		len(rec.Servers()) != 1 || rec.ServerOf(node) != "valkey 8.1.3" {
		t.Errorf("its server is %q (%s), of %v", rec.Meta[recording.MetaServer], rec.Meta[recording.MetaKind],
			rec.Servers())
	}
	for _, one := range rec.Calls {
		if one.Node != node {
			t.Fatalf("a call of %s", one.Node)
		}
	}
	for _, h := range rec.Histograms {
		if h.Node != node {
			t.Fatalf("latencies of %s", h.Node)
		}
	}
	of := func(subject string) int {
		return len(rec.EventsOf(recording.SourceServer, subject, "fork")) +
			len(rec.Series(recording.SourceServer, subject, "used_memory"))
	}
	if _, seen := rec.SnapshotOf(recording.SourceServer, other, "config"); of(other) != 0 || seen {
		t.Errorf("%d rows of the other node, a snapshot: %v", of(other), seen)
	}
	if len(rec.Calls) != 60 || of(node) == 0 || len(rec.Series(recording.SourceHost, "host", "load")) == 0 {
		t.Errorf("%d calls, %d rows of the node", len(rec.Calls), of(node))
	}
}

// TestCutKnowsWhatWasBefore: of the time before a cut it has latencies, what held then and what changed, apart from its
// own.
func TestCutKnowsWhatWasBefore(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs))
	r.SetMeta(recording.MetaTarget, node)
	for i := range int64(100) {
		ns := startNs + i*1e9
		c.ns.Store(ns)
		r.Call(call(ns))
		for _, source := range []string{recording.SourceProbe, recording.SourceTap} {
			r.Histogram(recording.Histogram{Second: ns / 1e9, Source: source, Node: node, Op: "kept GET"})
		}
		for at, name := range map[int64]string{0: "before", 60: "between", 85: "in"} { // when each changes
			v := float64(0)
			if i >= at && at > 0 {
				v = 1
			}
			if i == 0 || i == at {
				r.Sample(recording.Sample{
					TimeNs: ns, Source: recording.SourceServer, Subject: node, Name: name, Value: v,
				})
				r.Snapshot(recording.Snapshot{
					TimeNs: ns, Source: recording.SourceServer, Subject: node, Name: name, Body: fmt.Sprint(v),
				})
			}
		}
	}
	rec := cut(t, r, ring.Cut{
		From: time.Unix(0, startNs+80e9), To: time.Unix(0, startNs+90e9), Before: 30 * time.Second,
	})
	of := func(rec *recording.Recording) (first, last int64, n int) {
		for _, h := range rec.Histograms {
			if n == 0 {
				first = h.Second - startNs/1e9
			}
			last, n = h.Second-startNs/1e9, n+1
		}
		return first, last, n
	}
	for _, tt := range []struct {
		rec         *recording.Recording
		first, last int64
		histograms  int
		steps       map[string]int
	}{
		{rec, 80, 89, 20, map[string]int{"before": 1, "between": 1, "in": 2}},
		{rec.Earlier(), 50, 79, 60, map[string]int{"before": 1, "between": 2, "in": 1}},
	} {
		if first, last, n := of(tt.rec); first != tt.first || last != tt.last || n != tt.histograms {
			t.Errorf("%d histograms of %d to %d, want %d of %d to %d", n, first, last, tt.histograms, tt.first, tt.last)
		}
		for name, want := range tt.steps {
			if got := tt.rec.Series(recording.SourceServer, node, name); len(got) != want {
				t.Errorf("%s has %d values, want %d", name, len(got), want)
			}
			snapshots := 0
			for _, s := range tt.rec.Snapshots {
				if s.Name == name && s.Source == recording.SourceServer {
					snapshots++
				}
			}
			if snapshots != want {
				t.Errorf("%s has %d snapshots, want %d", name, snapshots, want)
			}
		}
	}
	if start, _ := rec.Window(); start != startNs+80e9 || len(rec.Calls) != 10 {
		t.Errorf("it begins at %d with %d calls", start-startNs, len(rec.Calls))
	}
}

func cut(t *testing.T, r *ring.Ring, c ring.Cut) *recording.Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cut.slowpath")
	if err := r.SaveCut(t.Context(), c, foldertest.Open(t, filepath.Dir(path)), filepath.Base(path)); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestCutCountsConnections: chains and failed transactions of connections are those of the window.
func TestCutCountsConnections(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs))
	r.SetMeta(recording.MetaTarget, node)
	const over, grows, fresh = "10.0.0.7:1", "10.0.0.7:2", "10.0.0.7:3"
	count := func(client string, ns int64, v float64) {
		c.ns.Store(ns)
		of := series.TransactionsFailed
		r.Sample(recording.Sample{
			TimeNs: ns, Source: of.Source, Subject: of.About(client), Name: of.Name, Value: v,
		})
	}
	count(over, startNs+1e9, 400)
	count(grows, startNs+1e9, 300)
	for i := range int64(60) {
		c.ns.Store(startNs + 2e9 + i*1e8)
		r.Call(call(startNs + 2e9 + i*1e8))
	}
	count(grows, startNs+9e9, 307)
	count(fresh, startNs+9e9, 5)
	rec := cut(t, r, ring.Cut{From: time.Unix(0, startNs+6e9), To: time.Unix(0, startNs+10e9)})
	for client, want := range map[string]float64{over: 0, grows: 7, fresh: 5} {
		if got, _ := rec.Of(series.TransactionsFailed, client).Last(); got != want {
			t.Errorf("%v transactions of %s, want %v", got, client, want)
		}
	}
}
