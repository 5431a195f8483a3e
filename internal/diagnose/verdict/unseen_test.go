package verdict_test

import (
	"math"
	"slices"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// TestUnseenLowersConfidence: what a source did not see lowers the confidence of a finding by its share, as far as the
// evidence is of that source; and it is a blind spot with that share. What was counted all the same, and what is too
// little to change a digit, does not.
func TestUnseenLowersConfidence(t *testing.T) {
	const scenario = "slow-command"
	before := verdict.Diagnose(corpus.Open(t, scenario), "test")
	for name, tt := range map[string]struct {
		source string
		unseen recording.Unseen
		times  float64
		listed bool
	}{
		"calls of the tap": {recording.SourceTap, recording.Unseen{What: "calls", Count: 20, Of: 100}, 0.8, true},
		"rows": {
			recording.SourceRecording, recording.Unseen{What: "rows of evidence", Count: 1, Of: 10}, 0.9, true,
		},
		"a part for the whole": {
			recording.SourceTap, recording.Unseen{What: "calls", Count: 90, Of: 100, Counted: true}, 1, true,
		},
		"little": {recording.SourceTap, recording.Unseen{What: "calls", Count: 4, Of: 1000}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			rec := corpus.Open(t, scenario)
			_, end := rec.Window()
			for _, u := range []recording.Unseen{{What: tt.unseen.What, Count: 99, Of: 100}, tt.unseen} {
				end++ // the last row counts
				rec.Event(recording.Event{
					TimeNs: end, Source: tt.source, Subject: recording.SubjectSelf, Kind: recording.KindUnseen,
					Detail: recording.Detail(u),
				})
			}
			rec.Index()
			d := verdict.Diagnose(rec, "test")
			seen := 0
			for _, f := range d.Findings {
				i := slices.IndexFunc(before.Findings, func(o cause.Finding) bool { return o.Cause == f.Cause })
				want := before.Findings[i].Confidence
				rests := 0
				for _, e := range f.Evidence {
					if tt.source == recording.SourceRecording || e.Source == tt.source {
						rests++
					}
				}
				want *= 1 - (1-tt.times)*float64(rests)/float64(len(f.Evidence))
				seen += rests
				if math.Abs(f.Confidence-want) > 1e-9 {
					t.Errorf("%s: confidence %v, want %v", f.Cause, f.Confidence, want)
				}
			}
			if seen == 0 {
				t.Error("no finding has evidence of that source")
			}
			i := slices.IndexFunc(d.BlindSpots, func(b recording.BlindSpot) bool { return b.What == tt.unseen.What })
			if (i >= 0) != tt.listed || i >= 0 && d.BlindSpots[i].Share != tt.unseen.Share() {
				t.Errorf("blind spots: %+v", d.BlindSpots)
			}
		})
	}
}

// TestRecordingWithoutEnd: a recording without an end is judged as far as it goes, and that is said.
func TestRecordingWithoutEnd(t *testing.T) {
	for end, want := range map[string]int{"": 1, "9000000000": 0} {
		r := recording.New()
		r.SetMeta(recording.MetaStart, "1000000000")
		if end != "" {
			r.SetMeta(recording.MetaEnd, end)
		}
		r.SetMeta(recording.MetaTarget, "a:1")
		r.Sample(recording.Sample{
			TimeNs: 7e9, Source: recording.SourceServer, Subject: "a:1", Name: "uptime_in_seconds", Value: 1,
		})
		r.Index()
		said := 0
		for _, b := range verdict.Diagnose(r, "test").BlindSpots {
			if b.What == "everything after 00:00:07 UTC" {
				said++
			}
		}
		if said != want {
			t.Errorf("end %q: said %d times, want %d", end, said, want)
		}
	}
}
