package top

import (
	"math"
	"strings"

	"slowpath/internal/report/layout"
)

// heatLevels are the times by which calls are counted, the longest last.
const heatLevels = 10

// heatEdges is the shortest time of each level, in nanoseconds.
var heatEdges = [heatLevels]int64{0, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9}

// heatLevel is the level of a call that took so long.
func heatLevel(ns int64) int {
	level := 0
	for level+1 < heatLevels && ns >= heatEdges[level+1] {
		level++
	}
	return level
}

// heatRow is a row of the map: the levels in [from, to).
type heatRow struct {
	label, ascii string
	from, to     int
}

// heatRows are the rows of maps of two sizes, the longest times first.
var heatRows = map[int][]heatRow{
	4: {
		{"≥ 100 ms", ">= 100 ms", 7, 10},
		{"≥ 10 ms", ">= 10 ms", 5, 7},
		{"≥ 1 ms", ">= 1 ms", 3, 5},
		{"< 1 ms", "< 1 ms", 0, 3},
	},
	8: {
		{"≥ 1 s", ">= 1 s", 9, 10},
		{"≥ 300 ms", ">= 300 ms", 8, 9},
		{"≥ 100 ms", ">= 100 ms", 7, 8},
		{"≥ 30 ms", ">= 30 ms", 6, 7},
		{"≥ 10 ms", ">= 10 ms", 5, 6},
		{"≥ 3 ms", ">= 3 ms", 4, 5},
		{"≥ 1 ms", ">= 1 ms", 3, 4},
		{"< 1 ms", "< 1 ms", 0, 3},
	},
}

// heatLabel is the width of the labels.
const heatLabel = 9

// heatSteps are how many seconds a column may have.
var heatSteps = []int64{1, 2, 5, 10, 15, 30, 60}

// heatStep chooses how many seconds a column has, so that all seconds fit.
func heatStep(seconds int64, columns int) int64 {
	for _, s := range heatSteps {
		if seconds <= s*int64(columns) {
			return s
		}
	}
	return heatSteps[len(heatSteps)-1]
}

// heatMap draws calls by their time (up) and when they ended (to the right, the newest last), and an axis below.
func (s *screen) heatMap(f Frame, rows, width int) []string {
	columns := width - heatLabel - 1
	if columns < 1 || len(f.Seconds) == 0 {
		return make([]string, rows+1)
	}
	last, first := f.Seconds[len(f.Seconds)-1].Unix, f.Seconds[0].Unix
	step := heatStep(last-first+1, columns)
	counts := make([][heatLevels]int64, columns)
	newest := last / step
	for _, sec := range f.Seconds {
		c := columns - 1 - int(newest-sec.Unix/step)
		if c < 0 || c >= columns {
			continue
		}
		for i, n := range sec.Counts {
			counts[c][i] += n
		}
	}
	var lines []string
	for _, r := range heatRows[rows] {
		lines = append(lines, s.heatLine(r, counts, f.SlowNs))
	}
	return append(lines, s.heatAxis(f, step, columns))
}

func (s *screen) heatLine(r heatRow, counts [][heatLevels]int64, slowNs int64) string {
	label := r.label
	if !s.p.Style.Unicode {
		label = r.ascii
	}
	paint := layout.None
	switch to := r.to; {
	case slowNs > 0 && heatEdges[r.from] >= slowNs:
		paint = layout.Red
	case slowNs > 0 && (to == heatLevels || heatEdges[to] > slowNs):
		paint = layout.Yellow
	}
	var b strings.Builder
	for _, column := range counts {
		n := int64(0)
		for _, c := range column[r.from:r.to] {
			n += c
		}
		b.WriteString(s.shade(n))
	}
	cells := strings.TrimRight(b.String(), " ")
	return s.p.In(layout.Dim, layout.PadLeft(label, heatLabel)) + " " + s.p.In(paint, cells)
}

// shades are from few calls to many, each for ten times as many as the one before.
var (
	shades      = []string{" ", "·", "░", "▒", "▓", "█"}
	shadesASCII = []string{" ", ".", ":", "+", "*", "#"}
)

func (s *screen) shade(n int64) string {
	of := shadesASCII
	if s.p.Style.Unicode {
		of = shades
	}
	if n <= 0 {
		return of[0]
	}
	return of[min(len(of)-1, 1+int(math.Log10(float64(n))))]
}

// heatAxis says what time the columns are of.
func (s *screen) heatAxis(f Frame, step int64, columns int) string {
	now := "now"
	left := "-" + brief(int64(columns)*step)
	whose := "your calls"
	if f.HeatOwn {
		whose = "slowpath's own calls"
	}
	legend := whose + ", a column is " + brief(step) + ", darker: more"
	gap := columns - layout.Width(left) - layout.Width(now)
	if layout.Width(legend)+2 > gap {
		legend = "a column is " + brief(step)
	}
	if layout.Width(legend)+2 > gap {
		legend = ""
	}
	before := max(0, (gap-layout.Width(legend))/2)
	line := left + strings.Repeat(" ", before) + legend +
		strings.Repeat(" ", max(0, gap-before-layout.Width(legend))) + now
	return s.p.In(layout.Dim, layout.Pad("", heatLabel+1)+line)
}

// brief is a number of seconds: "45 s", "5 min".
func brief(seconds int64) string {
	if seconds >= 60 && seconds%60 == 0 || seconds >= 600 {
		return decimal(seconds/60) + " min"
	}
	return decimal(seconds) + " s"
}
