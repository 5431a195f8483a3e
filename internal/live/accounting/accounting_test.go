package accounting

import (
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// at is a clock that stands at a time.
type at int64

func (a at) Now() int64 { return int64(a) }

func feed(v recording.Sink, rec *recording.Recording) {
	for k, value := range rec.Meta {
		v.SetMeta(k, value)
	}
	for _, e := range rec.Events {
		v.Event(e)
	}
	for _, c := range rec.Calls {
		v.Call(c, rec.SegmentsOf(c.ID)...)
	}
	for _, s := range rec.Snapshots {
		v.Snapshot(s)
	}
}

// TestOneCallHasOneAccount: a slow call of slowpath has the same parts in a live view as in a report, and they are all
// of it.
func TestOneCallHasOneAccount(t *testing.T) {
	for _, scenario := range []string{"slow-command", "server-cfs-throttled", "big-key-io", "lua-or-multi-long"} {
		rec := corpus.Open(t, scenario)
		rec.Index()
		_, end := rec.Window()
		v := live.New(live.Options{Clock: at(end + int64(settled))})
		r := New(v, at(end+int64(settled)))
		feed(live.Tee(v, r.Sink()), rec)
		r.Look()
		reported := map[int64]account.Account{}
		for _, a := range account.Build(rec).Slow {
			if a.Call.Source == recording.SourceProbe {
				reported[a.Call.IntendedNs] = a
			}
		}
		checked, same, unexplainedNs, allNs := 0, int64(0), int64(0), int64(0)
		for _, c := range v.Slow(1 << 20) {
			a, known := reported[c.Call.IntendedNs]
			if c.Whose != live.Own || !known {
				continue
			}
			checked++
			ns := int64(0)
			for _, s := range c.Segments {
				ns += s.ToNs - s.FromNs
				if s.State == recording.Unexplained {
					unexplainedNs += s.ToNs - s.FromNs
				}
				for _, g := range a.Segments {
					if g.Actor == s.Actor && g.State == s.State {
						same += max(min(g.ToNs, s.ToNs)-max(g.FromNs, s.FromNs), 0)
					}
				}
			}
			if ns != a.DurationNs() {
				t.Errorf("%s: the parts of a call of %d ns are %d ns", scenario, a.DurationNs(), ns)
			}
			allNs += ns
		}
		t.Logf("%s: %d calls, %.1f %% of their time as reported, %.1f %% unexplained", scenario, checked,
			100*float64(same)/float64(allNs), 100*float64(unexplainedNs)/float64(allNs))
		if checked < 5 || float64(same) < 0.95*float64(allNs) { // a view keeps the 64 longest parts
			t.Errorf("%s: of %d calls %d of %d ns are in the state that a report says", scenario, checked, same, allNs)
		}
	}
}
