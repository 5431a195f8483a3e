package ring_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// fakeClock tells the time that a test sets.
type fakeClock struct{ ns atomic.Int64 }

func (c *fakeClock) Now() int64 { return c.ns.Load() }

// written is a row of a recording, and when its source wrote it, or could have.
type written struct {
	ns  int64
	put func(recording.ProfileSink)
}

// rowsOf are the rows of a recording as its sources wrote them: what lasts is written when it ends.
func rowsOf(rec *recording.Recording) (out []written) {
	start, _ := rec.Window()
	add := func(ns int64, put func(recording.ProfileSink)) { out = append(out, written{ns, put}) }
	for k, v := range rec.Meta {
		if k != recording.MetaEnd {
			add(start, func(s recording.ProfileSink) { s.SetMeta(k, v) })
		}
	}
	for _, c := range rec.Calls {
		segs := rec.SegmentsOf(c.ID)
		add(c.EndNs, func(s recording.ProfileSink) { s.Call(c, segs...) })
	}
	for _, e := range rec.Events {
		add(e.TimeNs+e.DurationNs, func(s recording.ProfileSink) { s.Event(e) })
	}
	for _, v := range rec.Snapshots {
		add(v.TimeNs, func(s recording.ProfileSink) { s.Snapshot(v) })
	}
	for _, p := range rec.Profiles {
		add(p.TimeNs, func(s recording.ProfileSink) { s.Profile(p) })
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			add(u.TimeNs, func(s recording.ProfileSink) { s.ConnUse(client, u) })
		}
	}
	for _, source := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost, recording.SourceTap, recording.SourceLoad,
		recording.SourceProfile,
	} {
		for subject, names := range rec.NamesBySubject(source, "") {
			for _, name := range names {
				for _, p := range rec.Series(source, subject, name) {
					v := recording.Sample{
						TimeNs: p.TimeNs, Source: source, Subject: subject, Name: name, Value: p.Value,
					}
					add(v.TimeNs, func(s recording.ProfileSink) { s.Sample(v) })
				}
			}
		}
	}
	counts := map[int64]int64{} // of the tap, by second; it writes its histograms then
	for _, p := range rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.dropped") {
		counts[p.TimeNs/1e9] = p.TimeNs
	}
	for _, h := range rec.Histograms {
		ns := (h.Second + 1) * 1e9
		if at := counts[h.Second]; h.Source == recording.SourceTap && at > 0 {
			ns = at
		}
		add(ns, func(s recording.ProfileSink) { s.Histogram(h) })
	}
	_, end := rec.Window()
	for i := range out {
		out[i].ns = min(max(out[i].ns, start), end)
	}
	slices.SortStableFunc(out, func(a, b written) int { return cmp.Compare(a.ns, b.ns) })
	if v := rec.Meta[recording.MetaEnd]; v != "" { // a watch writes it last
		add(end, func(s recording.ProfileSink) { s.SetMeta(recording.MetaEnd, v) })
	}
	return out
}

// replay has a ring take the rows of a recording, with files of a second.
func replay(t *testing.T, r *ring.Ring, c *fakeClock, rows []written) {
	t.Helper()
	flushed := c.Now()
	for _, w := range rows {
		c.ns.Store(max(c.Now(), w.ns))
		w.put(r)
		if c.Now()-flushed > 250e6 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
			flushed = c.Now()
		}
	}
}

// line is what a recording is judged to be.
func line(rec *recording.Recording, tier recording.Tier) string {
	d := verdict.Diagnose(rec.Without(tier.Without...), "corpus")
	var b strings.Builder
	b.WriteString(d.Verdict)
	for _, f := range d.Findings {
		fmt.Fprintf(&b, " | %s %.4f %s %s", f.Cause, f.ExcessShare, f.Grade, f.Because)
	}
	return b.String()
}

// TestRecordingsThroughTheRing: see throughTheRing. TestCorpusThroughTheRing has all recordings.
func TestRecordingsThroughTheRing(t *testing.T) {
	for _, scenario := range []string{"healthy-idle", "slow-command"} {
		t.Run(scenario, func(t *testing.T) { throughTheRing(t, scenario) })
	}
}

// cameBefore are the incidents that show in the first seconds of their recordings only.
var cameBefore = []string{"active-expire-cycle", "pool-idle-reap-redial-go-redis-v8", "pool-leak-go-redis"}

// throughTheRing writes a recording of the corpus to a ring, row by row, and saves it: it is judged as the original,
// and of its last seven tenths the first cause is the same.
func throughTheRing(t *testing.T, scenario string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "original.slowpath")
	if err := corpus.Unpack(scenario, path); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	start, end := rec.Window()
	c := &fakeClock{}
	c.ns.Store(start)
	r, err := ring.Open(ring.Options{
		Folder: foldertest.Open(t, t.TempDir()), Keep: time.Hour, Each: time.Second, Clock: c,
		Log: func(s string) { t.Error(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	replay(t, r, c, rowsOf(rec))
	if s := r.Status(); s.Files < 3 && end-start > 5e9 {
		t.Errorf("%d files of a recording of %v", s.Files, time.Duration(end-start))
	}
	saved := filepath.Join(t.TempDir(), "saved.slowpath")
	err = saveAt(t, r, time.Unix(0, start), time.Unix(0, end+1), saved)
	if err != nil {
		t.Fatal(err)
	}
	want, err := recording.OpenToJudge(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := recording.OpenToJudge(saved)
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range recording.Tiers[:1] { // what the others see is of the same rows
		if a, b := line(want, tier), line(got, tier); a != b {
			t.Errorf("%s\noriginal %s\nsaved    %s", tier.Name, a, b)
		}
	}
	lastPart := filepath.Join(t.TempDir(), "part.slowpath")
	from := start + (end-start)*3/10
	if err := saveAt(t, r, time.Unix(0, from), time.Unix(0, end+1), lastPart); err != nil {
		t.Fatal(err)
	}
	part, err := recording.OpenToJudge(lastPart)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := first(want), first(part); a != b && !slices.Contains(cameBefore, scenario) {
		t.Errorf("the whole is judged as %q, its last part as %q", a, b)
	}
}

// first is the first cause of a recording, or its verdict where none was found.
func first(rec *recording.Recording) string {
	d := verdict.Diagnose(rec, "corpus")
	if len(d.Findings) == 0 {
		return d.Verdict
	}
	return d.Findings[0].Cause
}
