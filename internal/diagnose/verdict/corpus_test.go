package verdict_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

var update = flag.Bool("update", false, "write testdata/corpus.golden again")

const golden = "testdata/corpus.golden"

// judged is what a recording of the corpus is judged to be at a tier, a line of the golden file: the verdict, then each
// finding as cause, share of the excess, strength, grade, and the root cause that it is a consequence of. How often
// such findings are right, the confidence, comes from other recordings (calibration.json).
func judged(scenario, tier string, d verdict.Diagnosis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", scenario, tier, d.Verdict)
	for _, f := range d.Findings {
		fmt.Fprintf(&b, " | %s %.4f %.4f %s", f.Cause, f.ExcessShare, f.Strength, f.Grade)
		if f.Because != "" {
			b.WriteString(" because " + f.Because)
		}
	}
	return b.String()
}

// TestCorpus: the recordings of the corpus are judged as they always were, with all sources, without the tap,
// and by a connection alone. A change of this file is a change of behaviour: make it on purpose, and review it.
func TestCorpus(t *testing.T) {
	var lines []string
	for _, scenario := range corpus.Scenarios() {
		rec := corpus.Open(t, scenario)
		for _, tier := range recording.Tiers {
			d := verdict.Diagnose(rec.Without(tier.Without...), "corpus")
			checkShares(t, scenario+" "+tier.Name, d)
			checkNumbers(t, scenario+" "+tier.Name, d)
			checkLostTime(t, scenario+" "+tier.Name, d)
			checkText(t, scenario+" "+tier.Name, d)
			lines = append(lines, judged(scenario, tier.Name, d))
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := readGolden(t)
	for _, line := range lines {
		key := goldenKey(line)
		if want[key] != line {
			t.Errorf("%s\n got %s\nwant %s", key, line, want[key])
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("%s has no %s", golden, key)
	}
}

// goldenKey is the scenario and the tier of a line.
func goldenKey(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 {
		return line
	}
	return words[0] + " " + words[1]
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		out[goldenKey(sc.Text())] = sc.Text()
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// causesOf are the causes that a line of the golden file names.
func causesOf(line string) (ids []string) {
	for _, finding := range strings.Split(line, " | ")[1:] {
		id, _, _ := strings.Cut(finding, " ")
		ids = append(ids, id)
	}
	return ids
}
