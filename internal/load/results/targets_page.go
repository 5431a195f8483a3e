package results

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

var (
	//go:embed targets.html
	targetsSource string
	//go:embed targets.css
	targetsStyle string

	targetsTemplate = template.Must(template.New("targets").Parse(targetsSource))
)

// TargetsPage writes the comparison of several targets as an HTML page with plots, which needs nothing from elsewhere,
// and no script.
func TargetsPage(w io.Writer, s *experiment.Targets) error {
	if err := targetsTemplate.Execute(w, targetsView(s)); err != nil {
		return fmt.Errorf("writing the page of the comparison: %w", err)
	}
	return nil
}

// targetsPageView is what the template shows. Its texts have no control characters; the template escapes the rest.
type targetsPageView struct {
	Style           template.CSS
	Summary, Caveat string
	Interrupted     bool
	Targets         []pageTarget
	Plots           []targetsPlot
	Thick           int      // of bars, in pixels
	Head            []string // of the table
	Rows            []pageRow
	Setup           string
	Notes           []string
}

// pageTarget is a target, and what is to be said of it.
type pageTarget struct {
	Name, Text, Limit, Down string
}

// pageRow is a row of the table; one without cells is the head of those below it.
type pageRow struct {
	Label string
	Sub   bool // of the row above
	Cells []pageCell
}

type pageCell struct{ Text, Class string }

func targetsView(s *experiment.Targets) targetsPageView {
	v := targetsPageView{
		Style:   template.CSS(targetsStyle), // our own
		Summary: layout.OneLine(s.Summary), Caveat: layout.OneLine(s.Caveat), Interrupted: s.Interrupted,
		Plots: plotsOf(s), Thick: plotThick, Setup: strings.Join(experimentFacts(s.Setup, targetRounds(s)), " · "),
	}
	for _, t := range s.Targets {
		one := pageTarget{Name: t.Name, Text: layout.OneLine(targetText(t.Target)), Down: downText(t)}
		if t.Sentence != "" {
			one.Limit = layout.OneLine(t.LimitedBy + ": " + t.Sentence)
		}
		v.Targets = append(v.Targets, one)
	}
	v.table(s)
	for _, n := range s.Notes {
		v.Notes = append(v.Notes, layout.OneLine(n))
	}
	return v
}

// table is that of the text, without rows in which nothing is said.
func (v *targetsPageView) table(s *experiment.Targets) {
	for _, t := range s.Targets {
		v.Head = append(v.Head, targetHead(t))
	}
	for _, r := range targetRows(s)[1:] { // the first has the names
		row := pageRow{Label: strings.TrimSpace(r.label), Sub: strings.HasPrefix(r.label, " ")}
		said := r.cell == nil
		for _, t := range s.Targets {
			if r.cell == nil {
				break
			}
			c := r.cell(t)
			said = said || c.text != "" && c.text != nothing
			row.Cells = append(row.Cells, pageCell{layout.OneLine(c.text), classOf(c.colour)})
		}
		if said {
			v.Rows = append(v.Rows, row)
		}
	}
}

func classOf(p layout.Paint) string {
	switch p {
	case layout.Alarm:
		return "alarm"
	case layout.Calm:
		return "calm"
	case layout.Dim:
		return "dim"
	}
	return ""
}

// targetsPlot has a bar for each target, its interval, and a circle for each round. Across it is in per cent of the
// width, down in pixels.
type targetsPlot struct {
	Title, Note, Said    string
	Height, Bottom, Axis int
	Ticks                []plotTick
	Rows                 []plotRow
}

type plotTick struct {
	X             float64
	Anchor, Label string
}

type plotRow struct {
	Name, Value                      string
	Label, Bar, Middle, Above, Below int
	Drawn, First, Interval           bool
	Width, Low, High                 float64
	Dots                             []float64
}

// Measures of a plot in pixels.
const (
	plotRowHeight = 46
	plotLabel     = 14 // base line of a label, from the top of its row
	plotBar       = 20 // top of a bar
	plotThick     = 14
	plotAxis      = 22 // below the rows
	nearEnd       = 92 // per cent: the label of a tick ends there
	plotName      = 24 // columns of a name; the list of targets has all of it
)

// plotsOf are those of what is compared: of an open loop the rate is what was asked for.
func plotsOf(s *experiment.Targets) []targetsPlot {
	duration := func(v float64) string { return format.Brief(int64(v)) }
	compact := func(v float64) string { return format.Compact(int64(v)) }
	rate := plot(s, "Calls per second", "More is better.", format.Thousands[float64], compact,
		func(t experiment.Compared) *experiment.Estimate { return t.RequestsPerSecond },
		func(r experiment.Run) float64 { return r.RequestsPerSecond })
	half := plot(s, "p50", "Less is better: half of the calls take at most this long.", duration, duration,
		func(t experiment.Compared) *experiment.Estimate { return t.P50Ns },
		func(r experiment.Run) float64 { return float64(r.Latency.P50Ns) })
	tail := plot(s, "p99", "Less is better: 99 of 100 calls take at most this long.", duration, duration,
		func(t experiment.Compared) *experiment.Estimate { return t.P99Ns },
		func(r experiment.Run) float64 { return float64(r.Latency.P99Ns) })
	if s.Open {
		return []targetsPlot{half, tail}
	}
	return []targetsPlot{rate, half, tail}
}

func plot(s *experiment.Targets, title, note string, text, tickText func(float64) string, of estimateOf,
	ofRun func(experiment.Run) float64,
) targetsPlot {
	rows := len(s.Targets) * plotRowHeight
	p := targetsPlot{Title: title, Note: note, Bottom: rows, Axis: rows + plotAxis - 6, Height: rows + plotAxis}
	ticks, end := ticksTo(mostOf(s, of, ofRun))
	for i, v := range ticks {
		tick := plotTick{X: percentOf(v, end), Anchor: "middle", Label: tickText(v)}
		switch {
		case i == 0:
			tick.Anchor, tick.Label = "start", "0"
		case tick.X > nearEnd:
			tick.Anchor = "end"
		}
		p.Ticks = append(p.Ticks, tick)
	}
	cell := estimateCell(of, text)
	var said []string
	for i, t := range s.Targets {
		top := i * plotRowHeight
		r := plotRow{
			Name: targetHead(t), Value: cell(t).text, First: i == 0,
			Label: top + plotLabel, Bar: top + plotBar, Middle: top + plotBar + plotThick/2,
			Above: top + plotBar - 2, Below: top + plotBar + plotThick + 2,
		}
		if e := of(t); e != nil {
			r.Drawn, r.Width = true, percentOf(e.Value, end)
			if r.Interval = e.Low != nil && e.High != nil; r.Interval {
				r.Low, r.High = percentOf(*e.Low, end), percentOf(*e.High, end)
			}
			for _, run := range t.Runs {
				r.Dots = append(r.Dots, percentOf(ofRun(run.Run), end))
			}
		} else {
			r.Value = "was down"
		}
		said = append(said, r.Name+" "+r.Value)
		p.Rows = append(p.Rows, r)
	}
	p.Said = title + ": " + strings.Join(said, "; ")
	return p
}

func targetHead(t experiment.Compared) string {
	return t.Name + " " + layout.Shorten(layout.OneLine(t.Target.Label()), plotName, "…")
}

// mostOf is the largest number of a plot. An interval of which only noise is known may go on beyond it.
func mostOf(s *experiment.Targets, of estimateOf, ofRun func(experiment.Run) float64) (most float64) {
	for _, t := range s.Targets {
		for _, r := range t.Runs {
			most = max(most, ofRun(r.Run))
		}
	}
	for _, t := range s.Targets {
		if e := of(t); e != nil && e.High != nil {
			most = max(most, min(*e.High, 2*most))
		}
	}
	return most
}

// percentOf is a place across a plot, within it.
func percentOf(v, end float64) float64 {
	if end <= 0 {
		return 0
	}
	return math.Round(1e4*min(max(v/end, 0), 1)) / 100
}

// mostTicks, beside 0, have room for their labels on a telephone.
const mostTicks = 4

// ticksTo gives round numbers from 0 on, and the end of the plot, which is a little beyond the largest number.
func ticksTo(most float64) (ticks []float64, end float64) {
	if !(most > 0) || math.IsInf(most, 0) {
		return []float64{0}, 0
	}
	step := math.Pow(10, math.Floor(math.Log10(most))-1)
	for _, times := range []float64{2, 2.5, 2, 2, 2.5} { // 1, 2, 5, 10, 20, 50 of the first
		if math.Floor(most/step) <= mostTicks {
			break
		}
		step *= times
	}
	for i := 0.0; i <= math.Floor(most/step); i++ {
		ticks = append(ticks, i*step)
	}
	return ticks, 1.01 * most
}
