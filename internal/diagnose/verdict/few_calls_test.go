package verdict

import (
	"testing"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// TestFewCalls: where clients made so few calls that none of them slow says little, the verdict says so, and how long
// to watch; not where they made enough, or nobody looked.
func TestFewCalls(t *testing.T) {
	for _, c := range []struct {
		calls int
		watch time.Duration
		tap   bool
		want  string
	}{
		{0, time.Minute, true, " No call of a client was seen."},
		{1, 10 * time.Minute, true, " Only 1 call of clients came: too few to tell. Watch longer: --for 24h."},
		{3, 30 * time.Second, true, " Only 3 calls of clients came: too few to tell. Watch longer: --for 50m."},
		{
			36, 3 * time.Hour, true,
			" Only 36 calls of clients came: too few to tell, up to 8 % of their calls may be slow. " +
				"Watch longer: --for 24h.",
		},
		{
			299, time.Hour, true,
			" Only 299 calls of clients came: too few to tell, up to 1 % of their calls may be slow. " +
				"Watch longer: --for 1h1m.",
		},
		{300, time.Hour, true, ""},
		{3, time.Hour, false, ""},
	} {
		rec := recording.New()
		rec.SetMeta(recording.MetaSource+recording.SourceTap,
			recording.Detail(recording.SourceStatus{Name: recording.SourceTap, Used: c.tap}))
		got := fewCalls(&facts.Case{
			Rec: rec, Ledger: &account.Ledger{Users: account.Callers{Calls: c.calls}}, EndNs: int64(c.watch),
		})
		if got != c.want {
			t.Errorf("%d calls in %v: %q, want %q", c.calls, c.watch, got, c.want)
		}
	}
}

// TestNoCallIsNotHealthy: where slowpath's own calls were to be made and none came back, nobody knows how long calls
// take. Where they were left out, the server's own metrics are all there is.
func TestNoCallIsNotHealthy(t *testing.T) {
	for probed, want := range map[bool]string{true: Inconclusive, false: Healthy} {
		rec := recording.New()
		rec.SetMeta(recording.MetaStart, "0")
		rec.SetMeta(recording.MetaEnd, "2000000000")
		rec.SetMeta(recording.MetaSource+recording.SourceProbe,
			recording.Detail(recording.SourceStatus{Name: recording.SourceProbe, Used: probed}))
		rec.Index()
		if d := Diagnose(rec, "test"); d.Verdict != want {
			t.Errorf("probed %v: %s: %s", probed, d.Verdict, d.Summary)
		}
	}
}
