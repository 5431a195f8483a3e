package matrix

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// Text writes clients against servers for a person: a line per cell, by topology and server.
func Text(w io.Writer, m *Matrix, style layout.Style) error {
	p := layout.New(style)
	p.Paragraph("", "", m.Summary(), layout.Bold)
	if m.Interrupted {
		p.Paragraph("", "", "It was ended before all cells were measured.", layout.Alarm)
	}
	last := Cell{}
	for _, c := range m.Cells {
		if c.Server != last.Server || c.Topology != last.Topology {
			p.Section(c.Server + ", " + c.topology(m.Settings))
			p.Heads(widths, "CLIENT", "CALLS/S", "MEAN", "P50", "P99", "ERRORS")
		}
		last = c
		c.print(p)
	}
	p.Gap()
	p.Facts("", m.setting(), layout.Dim)
	return p.To(w, "the matrix")
}

// JSON writes the document slowpath.matrix/v1.
func JSON(w io.Writer, m *Matrix) error { return layout.JSON(w, "the matrix", m) }

var widths = []int{14, 9, 8, 8, 8, 8} // columns: the client, and its numbers

// print writes the numbers, and after or below them what they mean.
func (c Cell) print(p *layout.Page) {
	cells, colour := []string{c.Client}, layout.Dim
	if c.Measured() {
		cells, colour = append(cells, c.numbers()...), layout.None
	}
	printRow(p, colour, widths, cells, c.meaning())
}

// printRow prints cells, and what they mean, after them or below them. Where the columns do not fit, they are folded.
func printRow(p *layout.Page, colour layout.Paint, widths []int, cells []string, meaning string) {
	row := layout.Pad(p.Shorten(p.Text(cells[0]), widths[0]), widths[0])
	for i, t := range cells[1:] {
		row += " " + layout.PadLeft(p.Text(t), widths[i+1])
	}
	meaning = p.Text(meaning)
	if layout.Width(row)+2+layout.Width(meaning) <= p.Style.Width {
		p.Line(strings.TrimRight(p.In(colour, row+"  "+meaning), " "))
		return
	}
	p.Row(colour, widths, cells...)
	p.Paragraph("    ", "    ", meaning, layout.Dim)
}

// numbers are in the order of the columns.
func (c Cell) numbers() []string {
	mean := "-" // of a matrix that an older version has measured
	if c.MeanNs > 0 {
		mean = format.Duration(c.MeanNs)
	}
	return []string{
		format.Thousands(c.RequestsPerSecond), mean, format.Duration(c.P50Ns), format.Duration(c.P99Ns),
		format.Thousands(c.Errors),
	}
}

// meaning is why there are no numbers, or what limited them and what doctor found.
func (c Cell) meaning() string {
	if !c.Measured() {
		return "no figures: " + c.Empty
	}
	var parts []string
	if c.LimitedBy != "" {
		parts = append(parts, "limit: "+c.LimitedBy)
	}
	switch {
	case c.Unwatched != "":
		parts = append(parts, "no verdict: "+c.Unwatched)
	case c.Finding != "":
		parts = append(parts, "doctor: "+strings.Join(slices.Concat([]string{c.Finding}, c.Others), ", then "))
	}
	if c.Errors > 0 {
		parts = append(parts, c.kinds()+"last error: "+c.LastError)
	}
	return strings.Join(parts, "; ")
}

// kinds lists the errors by kind, the most frequent first, for the text before the last error.
func (c Cell) kinds() string {
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(c.ErrorKinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.ErrorKinds[b], c.ErrorKinds[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, format.Thousands(c.ErrorKinds[kind])+" "+kind)
	}
	if len(parts) == 0 { // of a matrix that an older version has measured
		return ""
	}
	return "errors: " + strings.Join(parts, ", ") + "; "
}

// topology is that of the cell, for a title.
func (c Cell) topology(s Settings) string {
	if c.Topology != Cluster {
		return c.Topology
	}
	return fmt.Sprintf("cluster of %s and %s", format.Count(s.Masters, "master"),
		format.Count(s.Masters*s.Replicas, "replica"))
}

// setting says how the cells were measured.
func (m *Matrix) setting() []string {
	s := m.Settings
	how := "each waits for its reply before its next call"
	if s.HTTP {
		how = "through the client's HTTP service"
	}
	watched := "doctor was not asked"
	if s.Watch > 0 {
		watched = fmt.Sprintf("then %s watched by doctor", format.Interval(s.Watch))
		if s.WatchShare > 0 {
			watched += " at " + format.WholePercent(s.WatchShare) + " of the calls/s"
		}
	}
	return []string{
		format.Count(s.Workers, "caller"), how, "9 GET to 1 SET of 1 byte",
		fmt.Sprintf("%s counted after %s", format.Interval(s.Duration), format.Interval(s.Warmup)), watched,
		"all on one machine of " + format.Count(m.CPUs, "CPU"), m.Start.UTC().Format(time.DateTime) + " UTC",
	}
}

// outcome is a cell that is done, in a line.
func (c Cell) outcome() string {
	if !c.Measured() {
		return c.Empty
	}
	line := c.figures()
	if c.Finding != "" {
		line += ", " + c.Finding
	}
	return line + fmt.Sprintf(" (%.0f s)", c.Seconds)
}

func (c Cell) figures() string {
	return fmt.Sprintf("%.0f calls/s, p99 %v, %s", c.RequestsPerSecond,
		time.Duration(c.P99Ns).Round(10*time.Microsecond), format.Count(c.Errors, "error"))
}
