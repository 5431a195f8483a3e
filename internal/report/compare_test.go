package report

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/house/golden"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/report/layout"
)

// TestCompareFits: at widths from 40 to 240 no line of a comparison is longer, and what changed is said at each.
func TestCompareFits(t *testing.T) {
	change, low, high := 160.4, 21.4, 678.0
	c := compare.Comparison{
		Verdict: compare.Worse, Summary: "Worse: of the callers' calls p99 went from 1.76 ms to 300 ms.",
		Before: compare.Watch{Target: "10.0.0.5:6379", Start: "2026-11-23T13:21:55Z", Seconds: 8, Summary: "Healthy."},
		After: compare.Watch{
			Name: "after.slowpath", Target: "10.0.0.5:6379", Start: "2026-11-23T13:22:12Z", Seconds: 8,
			Summary: "KEYS holds the event loop, and all other calls wait for it.",
		},
		Metrics: []compare.Metric{
			{Name: "p50_ns", Before: 83e3, After: 99e3, Verdict: compare.Same},
			{
				Name: "p99_ns", Before: 1.76e6, After: 3e8, Change: &change, Low: &low, High: &high,
				Verdict: compare.Worse,
			},
			{Name: "slow_share", Before: 0.001, After: 0.056, Verdict: compare.Unknown},
			{Name: "failed_share", Verdict: compare.Same},
		},
		Findings: []compare.Finding{{Cause: "timeout-discard-churn", After: 0.95, Change: "new"}},
		States:   []compare.State{{Actor: "server", State: "run-queue", Before: 7e7, After: 3e10}},
		Callers:  []compare.Caller{{Name: "a-caller-with-a-name-of-more-than-40-columns", Before: 606, After: 226}},
		Settings: []compare.Difference{{Name: "client-output-buffer-limit", Before: "normal 0 0 0", After: ""}},
	}
	for width := 40; width <= 240; width++ {
		var buf bytes.Buffer
		if err := Compare(&buf, c, layout.Style{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		if err := golden.Fits(buf.Bytes(), width); err != nil {
			t.Error(err)
		}
		for _, said := range []string{"no difference shown", "161 times (22.4 to 679)", "too short to tell", "new"} {
			if !strings.Contains(buf.String(), said) {
				t.Errorf("at %d: no %q in\n%s", width, said, &buf)
			}
		}
		if strings.Contains(buf.String(), "failed") {
			t.Errorf("at %d: a row of failed calls, and none failed", width)
		}
	}
}
