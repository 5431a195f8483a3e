package recording

import "testing"

func TestWithout(t *testing.T) {
	r := New()
	r.SetMeta(MetaSource+SourceTap, `{"name":"tap","used":true}`)
	r.SetMeta(MetaSource+SourceHost, `{"name":"host","used":true}`)
	for _, s := range []string{SourceProbe, SourceHost, SourceTap} {
		r.Call(Call{Source: s, Op: "GET"}, Segment{Actor: Server, State: Busy, ToNs: 1})
		r.Event(Event{Source: s, Kind: KindBusy})
		r.Sample(Sample{Source: s, Name: "x", Value: 1})
		r.Histogram(Histogram{Source: s})
		r.Snapshot(Snapshot{Source: s, Name: "y"})
	}
	r.Index()
	w := r.Without(SourceTap)
	if len(w.Calls) != 2 || len(w.segments) != 2 || len(w.Events) != 2 || len(w.Histograms) != 2 ||
		len(w.Snapshots) != 2 || len(w.series) != 2 {
		t.Errorf("%d calls, %d segments, %d events, %d histograms, %d snapshots, %d series; want 2 of each",
			len(w.Calls), len(w.segments), len(w.Events), len(w.Histograms), len(w.Snapshots), len(w.series))
	}
	if w.Used(SourceTap) || !w.Used(SourceHost) {
		t.Errorf("tap used: %v, host used: %v", w.Used(SourceTap), w.Used(SourceHost))
	}
	if !r.Used(SourceTap) || len(r.Calls) != 3 {
		t.Error("the original has changed")
	}
}
