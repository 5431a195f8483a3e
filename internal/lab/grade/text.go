package grade

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"slowpath/internal/report/layout"
)

// Line prints a result as one line, and what went wrong at its end as a second one.
func (r Result) Line(w io.Writer) {
	switch {
	case r.Skipped != "":
		fmt.Fprintf(w, "skip  %-28s %s\n", r.Scenario, r.Skipped)
	case r.Error != "":
		fmt.Fprintf(w, "FAIL  %-28s %s", r.Scenario, layout.OneLine(r.Error))
		if r.Got != "" {
			fmt.Fprintf(w, "; doctor said %s", r.Got)
		}
		fmt.Fprintln(w)
	default:
		mark := "ok   "
		if !r.Right() {
			mark = "WRONG"
		}
		fmt.Fprintf(w, "%s %-28s said %s", mark, r.Scenario, r.Got)
		if r.Confidence > 0 {
			fmt.Fprintf(w, " (%.0f %% of the lost time, confidence %.2f)", r.Share*100, r.Confidence)
		}
		if len(r.Others) > 0 {
			fmt.Fprintf(w, ", then %s", strings.Join(r.Others, ", "))
		}
		if !r.Right() && r.Rank > 0 {
			fmt.Fprintf(w, "; the truth is finding %d", r.Rank)
		}
		if share, ok := r.Unexplained(); ok {
			fmt.Fprintf(w, "; %.1f %% unexplained", share*100)
		}
		fmt.Fprintf(w, "  [%s, %.0f s]\n", r.Server, r.Seconds)
	}
	endingLine(w, r.Ending)
}

// endingLine says what went wrong after a verdict.
func endingLine(w io.Writer, ending string) {
	if ending != "" {
		fmt.Fprintf(w, "      after the verdict, which stands: %s\n", layout.OneLine(ending))
	}
}

// Table prints the confusion matrix, which has a row for each truth with the other verdicts on it, and how much of the
// excess is unexplained.
func (s Summary) Table(w io.Writer) {
	truths := make([]string, 0, len(s.Confusion))
	for t := range s.Confusion {
		truths = append(truths, t)
	}
	slices.Sort(truths)
	fmt.Fprintf(w, "\n%-30s %6s %6s  %s\n", "truth", "right", "wrong", "said instead")
	for _, t := range truths {
		var right, wrong int
		var instead []string
		for said, n := range s.Confusion[t] {
			if said == t {
				right += n
				continue
			}
			wrong += n
			instead = append(instead, fmt.Sprintf("%s ×%d", said, n))
		}
		slices.Sort(instead)
		fmt.Fprintf(w, "%-30s %6d %6d  %s\n", t, right, wrong, strings.Join(instead, ", "))
	}
	fmt.Fprintf(w, "\nfirst finding right: %d of %d scenarios; verdict healthy: %d of %d healthy loads; skipped: %d\n",
		s.Named, s.Scenarios, s.Healthy, s.HealthyTotal, s.Skipped)
	unexplainedTable(w, s)
}
