package random

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// wrong lists what went wrong, so that a reader can repeat it.
func (d *document) wrong(r Report) {
	again := "slowpath lab grade --random 1 --seed SEED --dir DIRECTORY"
	if r.Only != "" {
		again += " --server " + string(r.Only)
	}
	d.title("### Runs that went wrong")
	d.line("\nThe same drawn scenario again: `%s`", again)
	best := recording.Tiers[0].Name
	var listed, less []Run
	for _, run := range r.Runs {
		switch {
		case run.Failed():
		case run.wrongAt(best) != "":
			listed = append(listed, run)
		case slices.ContainsFunc(recording.Tiers, func(t recording.Tier) bool { return !run.firstIsRight(t.Name) }):
			less = append(less, run)
		}
	}
	d.line("\nAt %s, %d runs:", best, len(listed))
	d.table("seed", "drawn scenario", "true", best+" says", "wrong")
	for _, run := range listed {
		d.row(fmt.Sprint(run.Seed), run.Drawn.whole(), run.truths(), run.Tiers[best].String(), run.wrongAt(best))
	}
	d.line("\nRight at %s, but what is said first with fewer sources is not true: %d runs.", best, len(less))
	d.table("seed", "drawn scenario", "true", "T1 says", "T0 says")
	for _, run := range less {
		cells := []string{fmt.Sprint(run.Seed), run.Drawn.whole(), run.truths()}
		for _, tier := range recording.Tiers[1:] {
			said := "right"
			if !run.firstIsRight(tier.Name) {
				said = run.Tiers[tier.Name].String()
			}
			cells = append(cells, said)
		}
		d.row(cells...)
	}
	d.failed(r)
}

// failed lists the runs without a result.
func (d *document) failed(r Report) {
	if r.Failed == 0 {
		return
	}
	d.line("\nNot made:")
	d.table("seed", "drawn scenario", "why")
	for _, run := range r.Runs {
		if run.Failed() {
			why := strings.Map(func(c rune) rune {
				if c == '|' || c < ' ' {
					return ' '
				}
				return c
			}, run.Skipped+run.Error)
			d.row(fmt.Sprint(run.Seed), run.Drawn.whole(), why)
		}
	}
}

// firstIsRight tells whether what a tier says first is true, or a healthy run is called healthy.
func (r *Run) firstIsRight(tier string) bool {
	if r.Healthy() {
		return r.Tiers[tier].saysHealthy()
	}
	return r.isTrue(r.Tiers[tier].First)
}

// wrongAt says what is wrong with the judgement of a tier; empty: nothing.
func (r *Run) wrongAt(tier string) string {
	j := r.Tiers[tier]
	var wrong []string
	if !r.firstIsRight(tier) {
		wrong = append(wrong, "first")
	}
	for _, t := range r.Truth {
		if t.Cause != healthy && !slices.ContainsFunc(j.Findings, func(f Finding) bool { return t.is(f.Cause) }) {
			wrong = append(wrong, "not named: "+t.Cause)
		}
	}
	for _, f := range j.Findings {
		if !f.Right {
			wrong = append(wrong, "false: "+f.Cause)
		}
	}
	return strings.Join(wrong, "; ")
}

// whole is the drawn scenario with its faults.
func (s Drawn) whole() string {
	text := s.String()
	for _, f := range s.Faults {
		text += "; " + f.String()
	}
	return text
}

// truths are the true causes with what they cost.
func (r *Run) truths() string {
	if r.Healthy() {
		return healthy
	}
	var all []string
	for _, t := range r.Truth {
		all = append(all, fmt.Sprintf("%s %s (%s)", t.Cause, duration(t.CostNs), percent(t.Share)))
	}
	return strings.Join(all, ", ")
}
