package join

import (
	"encoding/json"
	"slices"
	"testing"

	"slowpath/internal/recording"
)

// TestEvidence: other rows of the client's tap are added, with the server's times and names.
func TestEvidence(t *testing.T) {
	w := newWorld()
	const offset = int64(-4 * 3600e9)
	for i := range int64(5) {
		w.call(trip{1e13 + i*1e9, 10, 5e6, 10, 0}, offset)
	}
	c, s := w.client, w.server
	tap := recording.SourceTap
	c.Event(recording.Event{
		TimeNs: 1e13 + 5, DurationNs: 9, Source: tap, Subject: "process:7",
		Kind: recording.KindThrottled,
	})
	c.Event(recording.Event{TimeNs: 1e13 + 5, Source: tap, Subject: "process:8", Kind: recording.KindThrottled})
	c.Event(recording.Event{TimeNs: 1e13 + 5, Source: tap, Subject: "redis:6379", Kind: recording.KindOpen})
	c.Event(recording.Event{TimeNs: 1e13 + 5, Source: tap, Subject: "other:6379", Kind: recording.KindOpen})
	c.Event(recording.Event{
		TimeNs: 1e13 + 5, Source: recording.SourceHost, Subject: "redis:6379",
		Kind: recording.KindThrottled,
	})
	c.ConnUse("10.0.0.2:4000", recording.ConnUse{TimeNs: 1e13 + 5, Calls: 3})
	c.Snapshot(recording.Snapshot{
		TimeNs: 1e13 + 5, Source: tap, Subject: "conn:10.0.0.2:4000", Name: "ends",
		Body: recording.Detail(recording.ConnEnds{Node: "redis:6379", PID: 7}),
	})
	c.Histogram(recording.Histogram{Second: 10000, Source: tap, Node: "redis:6379", Op: "client GET"})
	c.Sample(recording.Sample{TimeNs: 1e13, Source: tap, Subject: recording.SubjectSelf, Name: "tap.dropped", Value: 2})
	s.Sample(recording.Sample{TimeNs: 1, Source: tap, Subject: recording.SubjectSelf, Name: "tap.dropped", Value: 3})
	s.Sample(recording.Sample{TimeNs: 1, Source: recording.SourceHost, Subject: "process:8", Name: "cpu_ns", Value: 3})
	rec, results, err := All([]*recording.Recording{s, c}, false)
	if err != nil || results[0].PIDClashes != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	near := func(what string, got, want int64) {
		if got < want-maxSendDelayNs || got > want+maxSendDelayNs {
			t.Errorf("%s at %d, want %d", what, got, want)
		}
	}
	if es := rec.EventsOf(tap, "process:7", recording.KindThrottled); len(es) != 1 {
		t.Errorf("%+v", rec.Events)
	} else {
		near("throttled", es[0].TimeNs, 1e13+5+offset)
	}
	if es := rec.EventsOf(tap, "127.0.0.1:6379", recording.KindOpen); len(es) != 1 || len(rec.Events) != 2 {
		t.Errorf("%+v", rec.Events)
	}
	if u := slices.Collect(rec.ConnUses("10.0.0.2:4000")); len(u) != 1 || u[0].Calls != 3 {
		t.Errorf("%+v", u)
	} else {
		near("use", u[0].TimeNs, 1e13+5+offset)
	}
	var ends recording.ConnEnds
	if snap, ok := rec.SnapshotOf(tap, "conn:10.0.0.2:4000", "ends"); !ok || json.Unmarshal([]byte(snap.Body),
		&ends) != nil || ends.Node != "127.0.0.1:6379" {
		t.Errorf("%+v", snap)
	}
	if h := rec.Histograms; len(h) != 1 || h[0].Node != "127.0.0.1:6379" || h[0].Second != (1e13+offset)/1e9 {
		t.Errorf("%+v", h)
	}
	if n, _ := rec.Series(tap, recording.SubjectSelf, "tap.dropped").Last(); n != 5 {
		t.Errorf("%v reports dropped at both hosts", n)
	}
}
