package verdict

import (
	"testing"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
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
