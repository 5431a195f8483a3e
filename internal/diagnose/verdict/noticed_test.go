package verdict

import (
	"testing"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/law"
	"slowpath/internal/recording"
)

// TestSlowTimeNoticed: where less than 1 % of the calls are slow, somebody notices them if they take a tenth of the
// time of the clock and of what the callers spend in calls.
func TestSlowTimeNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		excess, inCalls time.Duration
		want            bool
	}{
		"one caller, always calling":    {excess: 1600 * time.Millisecond, inCalls: 9 * time.Second, want: true},
		"fifty, who wait for one stall": {excess: 1600 * time.Millisecond, inCalls: 400 * time.Second},
		"one caller, seldom calling":    {excess: 900 * time.Millisecond, inCalls: time.Second},
	} {
		of := facts.New(recording.New())
		of.Nodes = []*facts.Node{{Case: of, Address: "127.0.0.1:6379"}}
		of.StartNs, of.EndNs = 0, int64(10*time.Second)
		of.Ledger = &account.Ledger{Users: account.Callers{
			Calls: 20_000, Slow: 150, Recorded: 150, TotalNs: int64(c.inCalls), ExcessNs: int64(c.excess),
		}}
		if got := slowCallsNoticed(of); got != c.want {
			t.Errorf("%s: noticed is %v, want %v", name, got, c.want)
		}
	}
}

// TestRarely: what most of the time lost in a few slow calls has in common is said where that was seen.
func TestRarely(t *testing.T) {
	of := facts.New(recording.New())
	of.Ledger = &account.Ledger{Populations: []account.Population{{Slow: 3}}}
	fork := finding{Finding: cause.Finding{Title: "The fork stops the server", ClaimedShare: 0.9}, got: 9, inCalls: 9}
	for name, c := range map[string]struct {
		change func(*finding)
		said   bool
	}{
		"seen":             {func(*finding) {}, true},
		"by elimination":   {func(f *finding) { f.Grade = law.Eliminated }, false},
		"a part of it":     {func(f *finding) { f.ClaimedShare = 0.3 }, false},
		"not of slow ones": {func(f *finding) { f.inCalls = 1 }, false},
	} {
		f := fork
		c.change(&f)
		if got := rarely(of, &f); (got == " Most of the time lost in these: The fork stops the server.") != c.said {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := rarely(of, nil); got != "" {
		t.Errorf("without a finding: %q", got)
	}
	of.Ledger.Populations = nil
	if got := rarely(of, &fork); got != "" {
		t.Errorf("without a slow call: %q", got)
	}
}
