package random

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Line prints a run as one line: the drawn scenario, what the faults cost, and what each tier says first.
func (r Run) Line(w io.Writer) {
	switch {
	case r.Skipped != "":
		fmt.Fprintf(w, "seed %d: skipped: %s\n", r.Seed, r.Skipped)
		return
	case r.Error != "":
		fmt.Fprintf(w, "seed %d: FAILED: %s: %s\n", r.Seed, r.Drawn, r.Error)
		return
	}
	fmt.Fprintf(w, "seed %d: %s;", r.Seed, r.Drawn)
	if len(r.Drawn.Faults) == 0 {
		fmt.Fprint(w, " no fault")
	}
	for i, f := range r.Drawn.Faults {
		c := r.Costs[i]
		fmt.Fprintf(w, " %s", f)
		switch {
		case c.Hurts && c.Noticed:
			fmt.Fprintf(w, " costs %s per operation;", duration(c.CostNs))
		case c.Hurts:
			fmt.Fprintf(w, " costs %s per operation, which nobody notices;", duration(c.CostNs))
		case c.Noticed:
			fmt.Fprintf(w, " costs %s per operation, or nothing (p %.2f);", duration(c.CostNs), c.P)
		default:
			fmt.Fprint(w, " hurts nobody;")
		}
	}
	for _, tier := range recording.Tiers {
		j := r.Tiers[tier.Name]
		mark := "WRONG"
		if r.isTrue(j.First) || r.Healthy() && r.isOpen(j.First) {
			mark = "ok"
		}
		fmt.Fprintf(w, " · %s %s: %s", tier.Name, mark, j)
	}
	fmt.Fprintf(w, "  [%.0f s]\n", r.Seconds)
}

func duration(ns float64) string { return format.Duration(time.Duration(ns)) }

// String is the drawn scenario without its faults.
func (s Drawn) String() string {
	text := fmt.Sprintf("%s, %s", s.Server, s.Topology)
	if s.DelayMs > 0 {
		text += fmt.Sprintf(" of %g ms", s.DelayMs)
	}
	for _, c := range s.Callers {
		text += fmt.Sprintf(", %s ×%d at %g/s", c.Program, c.Workers, c.PerSecond)
	}
	return text
}

// String is the fault with its strength, by name.
func (f Fault) String() string {
	var numbers []string
	for name, v := range f.Strength {
		numbers = append(numbers, fmt.Sprintf("%s %g", name, v))
	}
	slices.Sort(numbers)
	if len(numbers) == 0 {
		return f.Name
	}
	return fmt.Sprintf("%s (%s)", f.Name, strings.Join(numbers, ", "))
}

// String are the findings, the first with its share and confidence.
func (j Judgement) String() string {
	if len(j.Findings) == 0 {
		return j.Verdict
	}
	first := j.Findings[0]
	text := fmt.Sprintf("%s (%.0f %%, confidence %.2f)", first.Cause, first.Share*100, first.Confidence)
	for _, f := range j.Findings[1:] {
		text += ", " + f.Cause
		if f.Because != "" {
			text += " (consequence)"
		}
	}
	return text
}

// Table prints the results of all runs.
func (r Report) Table(w io.Writer) {
	fmt.Fprintf(w, "\n%-4s %-28s %-28s %-28s %-24s %6s %6s\n", "tier", "first finding true", "true causes named",
		"healthy kept", "false findings", "Brier", "share")
	for _, tier := range recording.Tiers {
		t := r.Tiers[tier.Name]
		fmt.Fprintf(w, "%-4s %-28s %-28s %-28s %-24s %6.3f %6.2f\n", tier.Name, t.FirstNamed, t.Named, t.HealthyKept,
			t.FalseFindings, t.Brier, t.ShareError)
	}
	best := r.Tiers[recording.Tiers[0].Name]
	fmt.Fprintf(w, "\n%-32s %6s %-24s %-24s %s\n", "cause, at "+recording.Tiers[0].Name, "true", "first", "named",
		"false findings")
	causes := make([]string, 0, len(best.Causes))
	for c := range best.Causes {
		causes = append(causes, c)
	}
	slices.Sort(causes)
	for _, c := range causes {
		one := best.Causes[c]
		fmt.Fprintf(w, "%-32s %6d %-24s %-24s %d\n", c, one.Truths, one.First, one.Named, one.False)
	}
	fmt.Fprintf(w, "\n%-16s %10s  %s\n", "confidence", "mean", "right")
	for _, b := range best.Calibration {
		fmt.Fprintf(w, "%.2f to %.2f     %10.2f  %s\n", b.From, b.To, b.Confidence, b.Right)
	}
	fmt.Fprintf(w, "\nruns: %d of %d, %d failed or skipped\n", len(r.Runs), r.N, r.Failed)
}

// String is a share with its interval.
func (r Rate) String() string {
	if r.Of == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.0f to %.0f %%)", r.Count, r.Of, 100*r.Low, 100*r.High)
}
