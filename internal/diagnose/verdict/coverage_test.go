package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
)

// TestEachCauseHasItsRecordings: of each cause the corpus has a recording, judged with all sources, that names it, and
// of each of its look-alikes one that does not, or names it as a consequence of that.
func TestEachCauseHasItsRecordings(t *testing.T) {
	want := readGolden(t)
	for _, c := range cause.Catalogue() {
		if !slices.ContainsFunc(causesOf(ofScenarios(want, c.ID)), func(id string) bool { return id == c.ID }) {
			t.Errorf("%s: no recording of its scenarios names it", c.ID)
		}
		for _, other := range c.LookAlikes {
			lines := ofScenarios(want, other.ID)
			if lines == "" {
				t.Errorf("%s: the corpus has no recording of its look-alike %s", c.ID, other.ID)
			}
			for _, finding := range strings.Split(lines, " | ") {
				if strings.HasPrefix(finding, c.ID+" ") && !strings.HasSuffix(finding, " because "+other.ID) {
					t.Errorf("%s is named in the recording of %s: %s", c.ID, other.ID, lines)
				}
			}
		}
	}
}

// ofScenarios are the lines of a scenario, and of its variants where it has no recording under its own name, with all
// sources.
func ofScenarios(lines map[string]string, id string) string {
	if own, is := lines[id+" T2"]; is {
		return own
	}
	var out []string
	for key, line := range lines {
		scenario, tier, _ := strings.Cut(key, " ")
		if tier == "T2" && strings.HasPrefix(scenario, id+"-") {
			out = append(out, line)
		}
	}
	return strings.Join(out, " | ")
}

// checkShares: no share and no confidence is below 0 or above 1, and the parts of the account are of the same whole.
func checkShares(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	explained := 0.0
	for _, f := range d.Findings {
		if f.Because == "" {
			explained += f.ExcessShare
		}
		if f.ClaimedShare < f.ExcessShare-1e-9 {
			t.Errorf("%s: %s explains %v of the lost time, and claims only %v", key, f.Cause, f.ExcessShare,
				f.ClaimedShare)
		}
		if !(f.ExcessShare >= 0 && f.ExcessShare <= 1) || !(f.Confidence >= 0 && f.Confidence <= 1) {
			t.Errorf("%s: %s has the share %v, confidence %v", key, f.Cause, f.ExcessShare, f.Confidence)
		}
	}
	if explained > 1.001 {
		t.Errorf("%s: the findings explain %v of the lost time", key, explained)
	}
	sum := 0.0
	for _, s := range d.Account {
		sum += s.Share
	}
	if sum > 1.001 {
		t.Errorf("%s: the shares of the account add up to %v", key, sum)
	}
	if d.Excess.UnexplainedNs > d.Excess.Ns {
		t.Errorf("%s: %d ns of %d unexplained", key, d.Excess.UnexplainedNs, d.Excess.Ns)
	}
}
