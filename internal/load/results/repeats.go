package results

import (
	"fmt"
	"io"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// Repeats writes repeated loads for a person: medians with intervals, or what differs from a baseline.
func Repeats(w io.Writer, s *experiment.Repeats, style layout.Style) error {
	p := newPage(style)
	p.Paragraph("", "", s.Summary, layout.Bold)
	p.checks(s.Checks)
	p.Gap()
	if s.Comparison == nil {
		p.medians(s.Metrics)
	} else {
		p.comparison(s.Comparison)
	}
	p.experimentNotes(s.Setup, s.Notes, format.Count(len(s.Runs), "load"))
	return p.To(w, "the repeats")
}

// RepeatsJSON writes the document slowpath.repeats/v1.
func RepeatsJSON(w io.Writer, s *experiment.Repeats) error { return layout.JSON(w, "the repeats", s) }

var medianWidths = []int{19, 10, 10, 10}

func (p *page) medians(metrics []experiment.Metric) {
	p.Heads(medianWidths, "", "MEDIAN", "95 % FROM", "TO")
	for _, f := range metrics {
		p.Row(layout.None, medianWidths, metricName(f.Name), amount(f.Name, &f.Median.Value),
			amount(f.Name, f.Median.Low), amount(f.Name, f.Median.High))
	}
}

var comparisonWidths = []int{19, 9, 9, 0}

func (p *page) comparison(c *experiment.Comparison) {
	p.Heads(comparisonWidths, "", "BASELINE", "NOW", "")
	for _, f := range c.Metrics {
		row := layout.Pad(metricName(f.Metric), comparisonWidths[0])
		for i, v := range []float64{f.Old.Value, f.New.Value} {
			row += " " + layout.PadLeft(p.Text(amount(f.Metric, &v)), comparisonWidths[i+1])
		}
		colour := layout.None
		switch f.Verdict {
		case experiment.Faster:
			colour = layout.Calm
		case experiment.Slower:
			colour = layout.Alarm
		}
		p.Noted(layout.None, row, colour, f.Text)
	}
	p.Gap()
	p.Paragraph("", "", fmt.Sprintf("Baseline: %s, %s from %s. Intervals of 95 %% for all metrics together: equal "+
		"things differ in one of them in at most %.0f %% of comparisons. What the machine itself did between then "+
		"and now is in the difference.",
		c.Baseline, format.Count(c.Repeats, "load"), c.Start.Local().Format(time.DateTime), c.Alpha*100), layout.Dim)
	if len(c.Differences) > 0 {
		p.Gap()
		p.Line(p.In(layout.Doubt, "Set differently:"))
	}
	for _, d := range c.Differences {
		p.Paragraph("  ", "    ", fmt.Sprintf("%s: %s, in the baseline %s", layout.OneLine(d.Setting), orNone(d.New),
			orNone(d.Old)), layout.None)
	}
}

func orNone(s string) string {
	if s == "" {
		return "not given"
	}
	return layout.OneLine(s)
}

var metricNames = map[string]string{
	"requests_per_second":              "requests per second",
	"cpu_seconds_per_million_requests": "CPU s per million", "p999_ns": "p99.9",
}

// metricName is that of a field for people: p99_ns is p99.
func metricName(field string) string {
	if name, ok := metricNames[field]; ok {
		return name
	}
	return strings.TrimSuffix(field, "_ns")
}

// amount prints a metric in its unit; nil is not known.
func amount(field string, v *float64) string {
	switch {
	case v == nil:
		return "?"
	case strings.HasSuffix(field, "_ns"):
		return format.Duration(int64(*v))
	case *v >= 1000:
		return format.Thousands(*v)
	}
	return format.Digits(*v)
}
