package results

import (
	"fmt"
	"io"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// Capacity writes the highest rate that holds a limit for a person, with the loads that show it.
func Capacity(w io.Writer, c *experiment.Capacity, style layout.Style) error {
	p := newPage(style)
	colour := layout.Calm
	if c.Holds == nil {
		colour = layout.Alarm
	}
	p.Paragraph("", "", c.Summary, colour)
	p.Gap()
	p.trials(c.Trials)
	p.experimentNotes(c.Setup, c.Notes, fmt.Sprintf("%s; most of %d at either end must agree",
		format.Count(len(c.Trials),
			"load"), c.ConfirmRuns))
	return p.To(w, "the highest rate")
}

// CapacityJSON writes the document slowpath.find-max/v1.
func CapacityJSON(w io.Writer, c *experiment.Capacity) error {
	return layout.JSON(w, "the highest rate", c)
}

var trialWidths = []int{11, 8, 9, 8, 8, 8, 8, 9}

func (p *page) trials(trials []experiment.Trial) {
	p.Heads(trialWidths, "RATE", "", "OUTCOME", "P50", "P99", "P99.9", "MAX", "LATE P99")
	for _, t := range trials {
		l, colour := t.Run.Latency, layout.None
		if t.Outcome != experiment.Holds {
			colour = layout.Dim
		}
		p.Row(colour, trialWidths, format.Rate(t.PerSecond), t.Purpose, t.Outcome, format.Duration(l.P50Ns),
			format.Duration(l.P99Ns), format.Duration(l.P999Ns), format.Duration(l.MaxNs),
			format.Duration(t.Run.LateP99Ns))
	}
}
