package verdict_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

const golden = "testdata/corpus.golden"

// judged is what a recording of the corpus is judged to be at a tier, a line of the golden file: the verdict, then each
// finding as cause, share of the excess, grade, and the root cause that it is a consequence of. How often
// such findings are right, the confidence, comes from other recordings (calibration.json).
func judged(scenario, tier string, d verdict.Diagnosis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", scenario, tier, d.Verdict)
	for _, f := range d.Findings {
		fmt.Fprintf(&b, " | %s %.4f %s", f.Cause, f.ExcessShare, f.Grade)
		if f.Because != "" {
			b.WriteString(" because " + f.Because)
		}
	}
	return b.String()
}

// TestSomeOfTheCorpus is TestCorpus with some of the recordings.
func TestSomeOfTheCorpus(t *testing.T) {
	compareWithGolden(t, judgeCorpus(t, corpus.Some(), func(*testing.T, string, remedy.Step) {}))
}

// judgeCorpus judges recordings with all sources, without the tap, and by a connection alone. check is called for each
// complete step of a fix.
func judgeCorpus(t *testing.T, scenarios []string, check func(t *testing.T, cause string, s remedy.Step)) []string {
	t.Helper()
	all := make([][]string, len(scenarios)) // lines
	t.Run("recordings", func(t *testing.T) {
		for i, scenario := range scenarios {
			t.Run(scenario, func(t *testing.T) {
				t.Parallel()
				rec := corpus.Open(t, scenario)
				for tier, of := range recording.Tiers {
					d := verdict.Diagnose(rec.Without(of.Without...), "corpus")
					checkShares(t, scenario+" "+of.Name, d)
					checkNumbers(t, scenario+" "+of.Name, d)
					checkLostTime(t, scenario+" "+of.Name, d)
					checkText(t, scenario+" "+of.Name, d)
					if tier == 0 {
						checkFixSteps(t, d, check)
					}
					all[i] = append(all[i], judged(scenario, of.Name, d))
				}
			})
		}
	})
	return slices.Concat(all...)
}

func compareWithGolden(t *testing.T, lines []string) {
	t.Helper()
	want := readGolden(t)
	for _, line := range lines {
		key := goldenKey(line)
		if want[key] != line {
			t.Errorf("%s\n got %s\nwant %s", key, line, want[key])
		}
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
