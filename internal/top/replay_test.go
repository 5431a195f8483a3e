package top

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// hands is a clock that a test sets.
type hands struct{ ns int64 }

func (h *hands) Now() int64 { return h.ns }

// played is a recording that is watched as it was made.
type played struct {
	clock     *hands
	view      *live.View
	window    *live.Window
	collector *Collector
	frames    []Frame
}

// play gives the rows of a recording to a view and a window, in the order of their times, and takes a frame each
// second until 3 s after its end, when all seconds are whole.
func play(rec *recording.Recording) *played {
	start, end := rec.Window()
	p := &played{clock: &hands{start}}
	p.view = live.New(live.Options{Clock: p.clock})
	p.window = live.NewWindow(p.clock, 0)
	p.collector = &Collector{View: p.view, Clock: p.clock}
	sink := live.Tee(p.view, p.window)
	for k, v := range rec.Meta {
		if k != recording.MetaEnd {
			sink.SetMeta(k, v)
		}
	}
	rows := rowsInOrder(rec, 0)
	for at := start; at <= end+3e9; at += 1e9 {
		p.clock.ns = at
		for len(rows) > 0 && rows[0].ns <= at {
			rows[0].put(sink)
			rows = rows[1:]
		}
		p.frames = append(p.frames, p.collector.Frame())
	}
	for _, r := range rows {
		r.put(sink)
	}
	return p
}

// last is the last frame, with the verdict of the window.
func (p *played) last(t *testing.T) Frame {
	t.Helper()
	rec, ok := p.window.Recording()
	if !ok {
		t.Fatal("the window has no watch")
	}
	from, to := rec.Window()
	f := p.frames[len(p.frames)-1]
	for i := len(p.frames) - 1; f.Users.Calls == 0 && i > 0; i-- {
		f = p.frames[i-1]
	}
	f.Verdict = &Verdict{
		Diagnosis: verdict.Of(facts.New(rec), "test"), At: timeOf(to), Of: time.Duration(to - from),
		Took: 123 * time.Millisecond,
	}
	f.Cost = Cost{Process: 0.021, Screen: 0.001, Verdicts: 0.004, Kernel: 0.013, Bytes: 48 << 20}
	return f
}

// timedRow is a row, and when its source has written it.
type timedRow struct {
	ns  int64
	put func(recording.ProfileSink)
}

// rowsInOrder are the rows of a recording in the order in which they were written, so much later than they were.
func rowsInOrder(rec *recording.Recording, later time.Duration) (rows []timedRow) {
	shift := int64(later)
	add := func(ns int64, put func(recording.ProfileSink)) { rows = append(rows, timedRow{ns, put}) }
	for _, c := range rec.Calls {
		segments := rec.SegmentsOf(c.ID)
		for i := range segments {
			segments[i].FromNs, segments[i].ToNs = segments[i].FromNs+shift, segments[i].ToNs+shift
		}
		c.IntendedNs, c.StartNs, c.EndNs = c.IntendedNs+shift, c.StartNs+shift, c.EndNs+shift
		add(c.EndNs, func(s recording.ProfileSink) { s.Call(c, segments...) })
	}
	for _, h := range rec.Histograms {
		h.Second += int64(later / time.Second)
		add((h.Second+1)*1e9, func(s recording.ProfileSink) { s.Histogram(h) })
	}
	for _, e := range rec.Events {
		e.TimeNs += shift
		add(e.TimeNs+e.DurationNs, func(s recording.ProfileSink) { s.Event(e) })
	}
	for _, snap := range rec.Snapshots {
		snap.TimeNs += shift
		add(snap.TimeNs, func(s recording.ProfileSink) { s.Snapshot(snap) })
	}
	for _, p := range rec.Profiles {
		p.TimeNs += shift
		add(p.TimeNs, func(s recording.ProfileSink) { s.Profile(p) })
	}
	for _, source := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost, recording.SourceTap,
		recording.SourceProfile, recording.SourceLoad,
	} {
		for subject, names := range rec.NamesBySubject(source, "") {
			for _, name := range names {
				for _, p := range rec.Series(source, subject, name) {
					row := recording.Sample{
						TimeNs: p.TimeNs + shift, Source: source, Subject: subject, Name: name, Value: p.Value,
					}
					add(row.TimeNs, func(s recording.ProfileSink) { s.Sample(row) })
				}
			}
		}
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			u.TimeNs += shift
			add(u.TimeNs, func(s recording.ProfileSink) { s.ConnUse(client, u) })
		}
	}
	slices.SortStableFunc(rows, func(a, b timedRow) int { return cmp.Compare(a.ns, b.ns) })
	return rows
}

// wholeRecording is that of a scenario, with all events that judging packs.
func wholeRecording(t *testing.T, scenario string) *recording.Recording {
	t.Helper()
	path := t.TempDir() + "/recording.slowpath"
	if err := corpus.Unpack(scenario, path); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
