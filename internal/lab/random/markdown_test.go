package random

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

// ofSeries are 20 runs with one fault, of which the first n are judged right, and a healthy one.
func ofSeries(right int) (runs []Run) {
	far := Fault{Name: "rtt-floor", Cause: "rtt-floor", Strength: scenario.Strength{"delay_ms": 3}}
	for seed := range 20 {
		said := "rtt-floor"
		if seed >= right {
			said = "swap"
		}
		runs = append(runs, judged(uint64(seed), []Truth{{Cause: "rtt-floor", CostNs: 3e6, Share: 1}},
			diagnosis(cause.Finding{Cause: said, Confidence: 0.95, ExcessShare: 0.95}), far))
	}
	return append(runs, judged(20, []Truth{{Cause: healthy}}, diagnosis()))
}

// row is the line of a text that begins with cells.
func row(t *testing.T, text string, cells ...string) string {
	t.Helper()
	begin := "| " + strings.Join(cells, " | ") + " |"
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	t.Errorf("no row %s", begin)
	return ""
}

func TestMarkdown(t *testing.T) {
	failed := Run{Seed: 21, Error: "no | server", Drawn: Draw(21, "")}
	good := Summarise(append(ofSeries(20), failed), 0, 22, "v1")
	bad := Summarise(ofSeries(17), 0, 21, "v1")
	bad.Only = servers.Valkey811
	var out strings.Builder
	if err := Markdown(&out, []Report{good, bad}, "slowpath lab grade …"); err != nil {
		t.Fatal(err)
	}
	first, second, ok := strings.Cut(out.String(), "## Only valkey-8.1.1")
	if !ok || !strings.Contains(first, "## Any server") {
		t.Fatal("not two series")
	}
	if line := row(t, first, firstIsTrue, "T2", "at least 95 %"); !strings.HasSuffix(line, "| met |\n") {
		t.Error(line)
	}
	line := row(t, second, firstIsTrue, "T2", "at least 95 %")
	if !strings.Contains(line, "85 %: 17 of 20 (64") || !strings.HasSuffix(line, "| **missed** |\n") {
		t.Error(line)
	}
	for _, tier := range []string{"T2", "T1", "T0"} {
		if line := row(t, second, falseAlarm, tier, "at most 0.5 %"); !strings.HasSuffix(line, "| met |\n") {
			t.Error(line)
		}
	}
	for seed := range 21 {
		if wrong := strings.Contains(second, fmt.Sprintf("\n| %d | ", seed)); wrong != (seed >= 17 && seed < 20) {
			t.Errorf("seed %d is listed as wrong: %v", seed, wrong)
		}
	}
	if line := row(t, second, "17"); !strings.Contains(line, "rtt-floor (delay_ms 3)") ||
		!strings.Contains(line, "| first; not named: rtt-floor; false: swap |") {
		t.Error(line)
	}
	if !strings.Contains(second, "--seed SEED --dir DIRECTORY --server valkey-8.1.1`") {
		t.Error("no command that makes a run again")
	}
	if line := row(t, first, "21"); !strings.Contains(line, "no   server") {
		t.Error(line)
	}
	row(t, second, "0.9 to 1.0", "0.95", "17 of 20 (64–95 %)")
	for _, f := range scenario.Faults() {
		row(t, second, "`"+f.Name+"`", "`"+f.Cause+"`")
	}
	for _, topology := range scenario.Topologies {
		if topologies[topology] == "" {
			t.Errorf("what is %s?", topology)
		}
	}
}
