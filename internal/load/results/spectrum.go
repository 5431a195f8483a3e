package results

import (
	"fmt"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/report/layout"
)

const (
	spectrumRows  = 7
	spectrumLabel = 8   // columns of the scale on the left
	spectrumMost  = 150 // columns of the picture, however wide the terminal
)

// spectrum draws how many calls took how long: both scales are logarithmic, so that one call in a million is seen as
// well as the median.
func (p *page) spectrum(r *bench.Result) error {
	if r.Latency.Calls == 0 {
		return nil
	}
	h, err := r.Latency.Histogram()
	if err != nil {
		return err
	}
	d := newDrawing(h, min(p.Style.Width-spectrumLabel, spectrumMost))
	p.Gap()
	title := "latency spectrum, calls by time"
	if r.Settings.Loop == bench.Open {
		title = "latency spectrum, calls by time from the intended send"
	}
	p.Paragraph("", "", title, layout.Dim)
	for row := spectrumRows; row > 0; row-- {
		p.Line(layout.PadLeft(d.scale(row), spectrumLabel-1) + " " + p.In(layout.Blue, d.row(row, p.Style.Unicode)))
	}
	p.Line(strings.Repeat(" ", spectrumLabel) + d.ticks(p.Text("µs")))
	for _, marks := range d.marks(r.Latency) {
		p.Line(strings.Repeat(" ", spectrumLabel) + p.In(layout.Dim, marks))
	}
	return nil
}

// drawing is a histogram laid out on columns of equal width in the logarithm of time.
type drawing struct {
	from, to float64 // log10 of nanoseconds
	calls    []int64
	top      float64 // height of the highest column
}

func newDrawing(h *hdrhistogram.Histogram, width int) *drawing {
	d := &drawing{from: math.Log10(float64(max(h.Min(), 1))), to: math.Log10(float64(max(h.Max(), 1)))}
	// Half a decade at least, so that a steady server's spectrum is not noise drawn large.
	if missing := 0.5 - (d.to - d.from); missing > 0 {
		d.from, d.to = d.from-missing/2, d.to+missing/2
	}
	d.calls = make([]int64, width)
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			d.calls[d.column(max(b.From, 1))] += b.Count
		}
	}
	for _, n := range d.calls {
		d.top = max(d.top, height(n))
	}
	return d
}

// height of a column: one call is 1, ten are 2.
func height(calls int64) float64 {
	if calls == 0 {
		return 0
	}
	return 1 + math.Log10(float64(calls))
}

func (d *drawing) column(ns int64) int {
	at := (math.Log10(float64(ns)) - d.from) / (d.to - d.from) * float64(len(d.calls))
	return max(0, min(int(at), len(d.calls)-1))
}

// row draws the row-th line from below.
func (d *drawing) row(row int, unicode bool) string {
	var b strings.Builder
	for _, n := range d.calls {
		filled := height(n)/d.top*spectrumRows - float64(row-1)
		eighths := max(0, min(8, int(math.Round(filled*8))))
		switch {
		case row == 1 && n > 0 && eighths == 0:
			eighths = 1
		case !unicode && eighths >= 4:
			eighths = 8
		case !unicode:
			eighths = 0
		}
		if !unicode && eighths > 0 {
			b.WriteByte('#')
		} else {
			b.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[eighths])
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// scale is how many calls reach the top of a row.
func (d *drawing) scale(row int) string {
	if row != spectrumRows && row != 1 && row != (spectrumRows+1)/2 {
		return ""
	}
	return format.Compact(int64(math.Round(math.Pow(10, max(0, d.top*float64(row)/spectrumRows-1)))))
}

// ticks writes round times under their columns; micro is the unit of microseconds, as the terminal can show it.
func (d *drawing) ticks(micro string) string {
	line := []rune(strings.Repeat(" ", len(d.calls)))
	steps := []float64{1}
	if d.to-d.from < 3 {
		steps = []float64{1, 2, 5}
	}
	free := 0
	for decade := math.Floor(d.from); decade <= d.to; decade++ {
		for _, step := range steps {
			at := decade + math.Log10(step)
			if at < d.from || at > d.to {
				continue
			}
			free = write(line, d.column(int64(math.Round(math.Pow(10, at)))), free, "|"+tick(math.Pow(10, at), micro))
		}
	}
	return strings.TrimRight(string(line), " ")
}

// tick prints a round time: 20 µs.
func tick(ns float64, micro string) string {
	v, unit := ns, "ns"
	for _, next := range []string{micro, "ms", "s"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1e3, next
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// write puts a text at a column where it fits behind what is there, and gives the first column that is free then.
func write(line []rune, at, free int, text string) int {
	r := []rune(text)
	if at < free || at+len(r) > len(line) {
		return free
	}
	copy(line[at:], r)
	return at + len(r) + 1
}

// marks writes the percentiles under their columns, on as many lines as they need side by side.
func (d *drawing) marks(l bench.Latency) []string {
	type mark struct {
		name string
		ns   int64
	}
	left := []mark{{"p50", l.P50Ns}, {"p99", l.P99Ns}, {"p99.9", l.P999Ns}, {"max", l.MaxNs}}
	var out []string
	for len(left) > 0 && len(out) < 4 {
		line := []rune(strings.Repeat(" ", len(d.calls)))
		free := 0
		var again []mark
		for _, m := range left {
			text := "^" + m.name
			at := d.column(max(m.ns, 1))
			if at+len(text) > len(line) { // to the left of its column
				text = m.name + "^"
				at -= len(m.name)
			}
			if next := write(line, at, free, text); next > free {
				free = next
			} else {
				again = append(again, m)
			}
		}
		left = again
		out = append(out, strings.TrimRight(string(line), " "))
	}
	return out
}
