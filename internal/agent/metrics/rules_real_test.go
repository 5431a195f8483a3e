package metrics_test

import (
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

const (
	rulesFile = "../../../packaging/prometheus/slowpath.rules.yml"
	rulesTest = "../../../packaging/prometheus/slowpath.rules_test.yml"
)

// TestRules: promtool takes the alert rules that ship, and each fires when it should and not else.
func TestRules(t *testing.T) {
	needs.Real(t, needs.Command("promtool", "prometheus"))
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", rulesTest}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
