package live

import (
	"fmt"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// hands is a clock that a test sets.
type hands struct{ ns int64 }

func (h *hands) Now() int64 { return h.ns }

// TestWindowForgets: rows of before are gone, but for the last ones that still hold.
func TestWindowForgets(t *testing.T) {
	c := &hands{1000e9}
	w := NewWindow(c, 10*time.Second)
	if _, ok := w.Recording(); ok {
		t.Error("a recording before the watch has begun")
	}
	w.SetMeta(recording.MetaStart, "1000000000000")
	sample := recording.Sample{
		TimeNs: 1000e9, Source: recording.SourceServer, Subject: "a", Name: "maxclients", Value: 7,
	}
	w.Sample(sample)
	sample.Source, sample.Subject, sample.Name = recording.SourceHost, "process:7", "x"
	w.Sample(sample)
	for i, body := range []string{"1", "2"} {
		w.Snapshot(recording.Snapshot{
			TimeNs: 1000e9 + int64(i)*1e9, Source: recording.SourceHost, Subject: "a", Name: "process", Body: body,
		})
	}
	spot := recording.Event{
		Source: "watch", Kind: recording.KindBlindSpot, Detail: recording.Detail(recording.BlindSpot{What: "x"}),
	}
	w.Event(spot)
	w.Event(spot)
	for second := int64(1000); second < 1400; second++ {
		c.ns = second * 1e9
		w.Call(recording.Call{Source: recording.SourceTap, IntendedNs: c.ns - 1e6, EndNs: c.ns},
			recording.Segment{Actor: recording.Server, State: recording.Busy, FromNs: c.ns - 1e6, ToNs: c.ns})
		w.ConnUse("10.0.0.1:2", recording.ConnUse{TimeNs: c.ns, Calls: second})
	}
	rec, _ := w.Recording()
	from, to := rec.Window()
	if span := to - from; span < 10e9 || span > 10e9+int64(trimEvery) {
		t.Errorf("the window is %v", time.Duration(span))
	}
	if n := len(rec.Calls); n < 10 || n > 16 {
		t.Errorf("%d calls", n)
	}
	if len(rec.SegmentsOf(rec.Calls[0].ID)) != 1 {
		t.Error("a call has lost its segments")
	}
	if s := rec.Series(recording.SourceServer, "a", "maxclients"); len(s) != 1 || s[0].Value != 7 {
		t.Errorf("a value that holds is %v", s)
	}
	if s := rec.Series(recording.SourceHost, "process:7", "x"); len(s) != 0 {
		t.Errorf("a process that is gone has %v", s)
	}
	if s, ok := rec.SnapshotOf(recording.SourceHost, "a", "process"); !ok || s.Body != "2" || len(rec.Snapshots) != 1 {
		t.Errorf("snapshots: %v", rec.Snapshots)
	}
	if n := len(rec.EventsOf("watch", "", recording.KindBlindSpot)); n != 1 {
		t.Errorf("%d blind spots", n)
	}
	if u, ok := rec.LastConnUse("10.0.0.1:2"); !ok || u.Calls != 1399 {
		t.Errorf("use %v", u)
	}
}

// TestWindowIsBounded: many rows at once make it reach less far back, and then it drops some, and says so.
func TestWindowIsBounded(t *testing.T) {
	c := &hands{1000e9}
	w := NewWindow(c, 0)
	w.SetMeta(recording.MetaStart, "1000000000000")
	for i := range int64(10 * windowCalls) {
		c.ns = 1000e9 + i*2e6 // 100 s
		w.Call(recording.Call{IntendedNs: c.ns - 1e6, EndNs: c.ns})
		if len(w.calls) > 2*windowCalls {
			t.Fatalf("%d calls", len(w.calls))
		}
	}
	rec, _ := w.Recording()
	from, to := rec.Window()
	span, dropped := time.Duration(to-from), rec.Meta[recording.MetaDropped]
	if span < leastSpan || span > DefaultSpan || dropped != "" {
		t.Errorf("%v, dropped %q", span, dropped)
	}
	for range 5 * windowCalls { // at one time
		w.Call(recording.Call{IntendedNs: c.ns - 1e6, EndNs: c.ns})
	}
	for i := range 2 * windowSeries {
		w.Sample(recording.Sample{TimeNs: c.ns, Name: fmt.Sprint(i)})
		w.ConnUse(fmt.Sprint(i), recording.ConnUse{TimeNs: c.ns})
	}
	for range 300 {
		w.Snapshot(recording.Snapshot{TimeNs: c.ns, Body: string(make([]byte, 1<<20))})
	}
	if len(w.calls) > 2*windowCalls || w.size() > 3*windowBytes || len(w.samples)+len(w.uses) > 2*windowSeries {
		t.Errorf("%d calls, %d bytes, %d series", len(w.calls), w.size(), len(w.samples)+len(w.uses))
	}
	if rec, _ = w.Recording(); rec.Meta[recording.MetaDropped] == "" {
		t.Error("that rows were dropped is not said")
	}
}
