package verdict_test

import (
	"regexp"
	"testing"
	"time"

	"slowpath/internal/diagnose/verdict"
)

// upTo is what evidence says of the longest of the calls.
var upTo = regexp.MustCompile(`slow calls?.* up to ([\d.]+) ([nµm]?s) in one call`)

// upToOfAll is the same in a summary.
var upToOfAll = regexp.MustCompile(`were slow \(up to ([\d.]+) ([nµm]?s)\)`)

// checkNumbers checks that all numbers of a diagnosis are of the same calls: those of the populations.
func checkNumbers(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	slow, recorded, maxNs := 0, 0, int64(0)
	for _, p := range d.Populations {
		slow, recorded, maxNs = slow+p.SlowCalls, recorded+p.RecordedSlowCalls, max(maxNs, p.MaxNs)
		if p.SlowCalls > p.Calls || p.RecordedSlowCalls > p.SlowCalls || p.P50Ns > p.P99Ns || p.P99Ns > p.P999Ns ||
			p.P999Ns > p.MaxNs || p.SlowCalls > 0 && p.MaxNs < d.Latency.SlowThresholdNs {
			t.Errorf("%s: %+v, threshold %d", key, p, d.Latency.SlowThresholdNs)
		}
	}
	if slow != d.Latency.SlowCalls {
		t.Errorf("%s: %d slow calls, of all populations %d", key, d.Latency.SlowCalls, slow)
	}
	for _, w := range d.Worst {
		if ns := w.Ns - w.OwnDelayNs; ns > maxNs {
			t.Errorf("%s: a call of %d ns; the slowest of all took %d", key, ns, maxNs)
		}
	}
	checkLongest(t, key, upToOfAll, d.Summary, maxNs)
	for _, f := range d.Findings {
		if f.Of != 0 && f.Of != recorded {
			t.Errorf("%s: %s: of %d slow calls, recorded are %d", key, f.Cause, f.Of, recorded)
		}
		for _, e := range f.Evidence {
			checkLongest(t, key, upTo, e.Text, maxNs)
		}
	}
}

// checkLongest checks that what a text says of the longest call is not more than the slowest call took. Both are
// rounded to three digits.
func checkLongest(t *testing.T, key string, said *regexp.Regexp, text string, maxNs int64) {
	t.Helper()
	m := said.FindStringSubmatch(text)
	if m == nil {
		return
	}
	const rounding = 1.005
	if longest, err := time.ParseDuration(m[1] + m[2]); err != nil || float64(longest) > rounding*float64(maxNs) {
		t.Errorf("%s: %q; the slowest call took %s (%v)", key, text, time.Duration(maxNs), err)
	}
}
