package random

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// Markdown writes docs/accuracy.md: what series of drawn scenarios show, each with all runs that went wrong. The
// command is the one that makes it.
func Markdown(w io.Writer, series []Report, command string) error {
	d := &document{}
	d.line("# How often the verdict is right on drawn scenarios")
	d.line("")
	d.line("Made by this command, from the kept results and recordings; not edited.")
	d.line("")
	d.line("```text\n%s\n```", command)
	d.line("")
	d.line("A run draws servers, callers, noise and none, one or two faults from its seed, measures at the callers\n" +
		"what each fault costs them, and compares the verdict with that:\n" +
		"[how it is measured](truth.md#drawn-scenarios). T2 has all sources, T1 all but the tap, T0 a connection\n" +
		"alone. A fault whose cost nobody notices, or may be chance, is left open: it is right to name it, and\n" +
		"not to. Intervals are at 95 %% (Wilson).")
	for _, r := range series {
		d.series(r)
	}
	d.drawable()
	_, err := io.WriteString(w, d.text.String())
	return err
}

// document is Markdown that is written line by line.
type document struct{ text strings.Builder }

func (d *document) line(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// table begins a table.
func (d *document) table(columns ...string) {
	d.line("")
	d.row(columns...)
	d.line("%s|", strings.Repeat("|---", len(columns)))
}

func (d *document) row(cells ...string) {
	d.line("| %s |", strings.ReplaceAll(strings.Join(cells, " | "), "\n", " "))
}

func (d *document) title(title string) { d.line("\n%s", title) }

// series writes what one series shows.
func (d *document) series(r Report) {
	name := "Any server"
	if r.Only != "" {
		name = fmt.Sprintf("Only %s", r.Only)
	}
	d.title("## " + name)
	d.line("")
	d.about(r)
	d.figures(r)
	d.tiers(r)
	d.causes(r)
	d.calibration(r)
	d.wrong(r)
}

// about says how the series was made.
func (d *document) about(r Report) {
	if len(r.Runs) == 0 {
		d.line("No runs.")
		return
	}
	best := r.Tiers[recording.Tiers[0].Name]
	d.line("- %d runs, seeds %d to %d: %d in which a fault cost the callers time, %d healthy, %d failed or skipped",
		len(r.Runs), r.Runs[0].Seed, r.Runs[len(r.Runs)-1].Seed, best.FaultRuns, best.HealthyRuns, r.Failed)
	c := verdict.Calibrated()
	if c.Runs > 0 && r.Runs[0].Seed <= c.Seeds[1] && r.Runs[len(r.Runs)-1].Seed >= c.Seeds[0] {
		d.line(
			"- **training**: the confidences come from %d runs of seeds %d to %d, and causes were worked on with these",
			c.Runs, c.Seeds[0], c.Seeds[1])
	}
	var machines, versions []string
	others := 0
	for _, run := range r.Runs {
		if m := run.Machine; m != "" && !slices.Contains(machines, m) {
			machines = append(machines, m)
		}
		if v := run.Version; v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
		if !reflect.DeepEqual(run.Drawn, Draw(run.Seed, run.Only)) {
			others++
		}
	}
	d.line("- judged by version %s", strings.Join(versions, ", "))
	if len(machines) > 0 {
		d.line("- made on: %s", strings.Join(machines, "; "))
	}
	if others > 0 {
		d.line("- %d of the runs were drawn by another version: their seeds make other drawn scenarios now", others)
	}
	d.line("- disturbed: %d. Callers were late while the recording was made, and no fault explains it: all is open",
		r.Disturbed)
}

// figure is what is wanted of a tier.
type figure struct {
	name   string
	tier   string
	wanted float64
	atMost bool // instead of at least
	rate   func(Tier) Rate
}

func firstNamed(t Tier) Rate   { return t.FirstNamed }
func named(t Tier) Rate        { return t.Named }
func sure(t Tier) Rate         { return t.Calibration[len(t.Calibration)-1].Right }
func healthyWrong(t Tier) Rate { return t.HealthyWrong }
func shareClose(t Tier) Rate   { return t.ShareClose }
func culpritNamed(t Tier) Rate { return t.CulpritNamed }

const (
	firstIsTrue  = "the first finding is true, of runs with a fault that costs time"
	sureAreRight = "findings said with a confidence of 0.9 or more are right"
	falseAlarm   = "healthy runs with a wrong finding"
)

// figures are the aims.
var figures = []figure{
	{firstIsTrue, "T2", 0.95, false, firstNamed},
	{"causes that cost time are named", "T2", 0.95, false, named},
	{firstIsTrue, "T1", 0.75, false, firstNamed},
	{firstIsTrue, "T0", 0.60, false, firstNamed},
	{sureAreRight, "T2", 0.95, false, sure},
	{sureAreRight, "T1", 0.95, false, sure},
	{sureAreRight, "T0", 0.95, false, sure},
	{falseAlarm, "T2", 0.005, true, healthyWrong},
	{falseAlarm, "T1", 0.005, true, healthyWrong},
	{falseAlarm, "T0", 0.005, true, healthyWrong},
	{"shares of named causes are within 10 points of what was measured", "T2", 0.85, false, shareClose},
	{"the culprit is named, of named causes that have one", "T2", 0.9, false, culpritNamed},
}

// unexplainedAim is the median of the unexplained share of the excess that T2 may have.
const unexplainedAim = 0.03

// result says whether a figure is as wanted.
func (f figure) result(r Rate) string { return met(r.Of > 0, f.atMost == (r.Share <= f.wanted)) }

func met(measured, good bool) string {
	switch {
	case !measured:
		return "not measured"
	case good:
		return "met"
	}
	return "**missed**"
}

func (d *document) figures(r Report) {
	d.title("### Wanted and measured")
	d.table("figure", "tier", "wanted", "measured", "")
	for _, f := range figures {
		rate, bound := f.rate(r.Tiers[f.tier]), "at least "
		if f.atMost {
			bound = "at most "
		}
		d.row(f.name, f.tier, bound+percent(f.wanted), rate.long(), f.result(rate))
	}
	best := r.Tiers[recording.Tiers[0].Name]
	d.row("unexplained share of the excess, in the median of these runs", recording.Tiers[0].Name,
		"below "+percent(unexplainedAim), percent(best.Unexplained),
		met(best.FaultRuns > 0, best.Unexplained < unexplainedAim))
}

func (d *document) tiers(r Report) {
	d.title("### By tier")
	d.table("", "T2", "T1", "T0")
	for _, row := range []struct {
		name string
		of   func(Tier) string
	}{
		{"first finding true", func(t Tier) string { return t.FirstNamed.long() }},
		{"the same, where this tier has evidence of the causes", func(t Tier) string { return t.FirstShown.long() }},
		{"causes named", func(t Tier) string { return t.Named.long() }},
		{"healthy runs with the verdict healthy", func(t Tier) string { return t.HealthyKept.long() }},
		{"healthy runs with a wrong finding", func(t Tier) string { return t.HealthyWrong.long() }},
		{"wrong findings per 100 healthy runs", func(t Tier) string { return number(t.FalsePerHundredHealthy) }},
		{"wrong findings, of all", func(t Tier) string { return t.FalseFindings.long() }},
		{"of these: the fault was on, and cost nothing", func(t Tier) string { return strconv.Itoa(t.FalseOfFaults) }},
		{"Brier score of the confidences", func(t Tier) string { return fmt.Sprintf("%.3f", t.Brier) }},
		{"mean error of shares", func(t Tier) string { return number(100*t.ShareError) + " points" }},
		{"shares within 10 points", func(t Tier) string { return t.ShareClose.long() }},
		{"the culprit is named, of named causes that have one", func(t Tier) string { return t.CulpritNamed.long() }},
		{"unexplained, in the median", func(t Tier) string { return percent(t.Unexplained) }},
	} {
		cells := []string{row.name}
		for _, tier := range recording.Tiers {
			cells = append(cells, row.of(r.Tiers[tier.Name]))
		}
		d.row(cells...)
	}
}

func (d *document) causes(r Report) {
	d.title("### By cause")
	d.line("\n*True*: runs in which it cost the callers time. *First*, *named*: of these, it is the first, or among\n" +
		"the findings. *Right*: of the findings of it, the cause is true, a consequence of what is, or open.")
	columns, names := []string{"cause", "true"}, map[string]int{}
	for _, tier := range recording.Tiers {
		columns = append(columns, tier.Name+" first", tier.Name+" named", tier.Name+" right")
		for name, c := range r.Tiers[tier.Name].Causes {
			names[name] = c.Truths
		}
	}
	d.table(columns...)
	for _, name := range byCount(names) {
		cells := []string{"`" + name + "`", strconv.Itoa(names[name])}
		for _, tier := range recording.Tiers {
			c := r.Tiers[tier.Name].Causes[name]
			cells = append(cells, c.First.short(), c.Named.short(), c.Right.short())
		}
		d.row(cells...)
	}
}

// byCount are names, those with the highest counts first.
func byCount(counts map[string]int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	return names
}

func (d *document) calibration(r Report) {
	d.title("### How sure, and how right")
	d.sureness(r, "confidence", func(t Tier) []Bin { return t.Calibration })
}

// sureness is how right findings are that are known so well.
func (d *document) sureness(r Report, name string, of func(Tier) []Bin) {
	columns := []string{name}
	for _, tier := range recording.Tiers {
		columns = append(columns, tier.Name+" mean", tier.Name+" right")
	}
	d.table(columns...)
	for i := len(bins) - 2; i >= 0; i-- {
		cells := []string{fmt.Sprintf("%.1f to %.1f", bins[i], bins[i+1])}
		for _, tier := range recording.Tiers {
			b := of(r.Tiers[tier.Name])[i]
			mean := "–"
			if b.Right.Of > 0 {
				mean = fmt.Sprintf("%.2f", b.Confidence)
			}
			cells = append(cells, mean, b.Right.short())
		}
		d.row(cells...)
	}
}

// percent has one decimal, where it is needed.
func percent(share float64) string { return number(100*share) + " %" }

func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// long is the share, how it comes about, and its interval.
func (r Rate) long() string {
	if r.Of == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%s: %d of %d (%s to %s)", percent(r.Share), r.Count, r.Of, number(100*r.Low), percent(r.High))
}

// short is for narrow columns.
func (r Rate) short() string {
	if r.Of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%.0f–%.0f %%)", r.Count, r.Of, 100*r.Low, 100*r.High)
}
