package grade

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/recording"
)

func appRun(fault string, right ...bool) AppResult {
	r := AppResult{App: "celery", Path: "direct", Fault: fault}
	for i, t := range recording.Tiers {
		r.Tiers = append(r.Tiers, TierResult{Tier: t.Name, Right: right[i], Got: "healthy"})
	}
	return r
}

func TestSummaryOfApplications(t *testing.T) {
	wrong := appRun("", true, false, true)
	wrong.Tiers[1].Got, wrong.Tiers[1].Confidence, wrong.Tiers[1].Share = "nagle-delayed-ack", 0.96, 0.98
	wrong.Tiers[1].Others = []string{"rtt-floor"}
	wrong.Operations = []apps.Operation{{Name: "job", Done: 2, Errors: 1, Histogram: protocol.Histogram{{1 << 20, 2}}}}
	s := SummariseApps([]AppResult{
		appRun("", true, true, true), wrong, appRun("slow-command", true, false, false), {Skipped: "no node"},
	})
	want := []AppsTally{
		{Tier: "T2", Healthy: 2, Of: 2, Named: 1, Faults: 1},
		{Tier: "T1", Healthy: 1, Of: 2, Faults: 1},
		{Tier: "T0", Healthy: 2, Of: 2, Faults: 1},
	}
	for i, tally := range s.Tiers {
		if tally != want[i] {
			t.Errorf("%+v, want %+v", tally, want[i])
		}
	}
	if s.Skipped != 1 || s.Failed != 0 || s.Passed() {
		t.Errorf("%+v", s)
	}
	var out bytes.Buffer
	wrong.Line(&out)
	s.Table(&out)
	for _, line := range []string{
		"WRONG celery           direct     healthy                T2 healthy T1 nagle-delayed-ack (98 %, 0.96) then " +
			"rtt-floor",
		"job: 2, 1 error, p50 1.05 ms,", "T1             1 of     2               0 of     1",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in:\n%s", line, out.String())
		}
	}
}

// TestPassed: with less than T2 a fault may stay unnamed; a false finding may not be made with anything.
func TestPassed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result AppResult
		want   bool
	}{
		{"all right", appRun("", true, true, true), true},
		{"a false finding at T0", appRun("", true, true, false), false},
		{"a fault that T0 cannot see", appRun("slow-command", true, true, false), true},
		{"a fault that T2 does not name", appRun("slow-command", false, true, true), false},
		{"an error", AppResult{Error: "it did not start"}, false},
		{"skipped", AppResult{Skipped: "no node"}, true},
	} {
		if got := SummariseApps([]AppResult{tt.result}).Passed(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
