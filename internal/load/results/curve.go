package results

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

const (
	curveRows  = 13  // twelve steps: a tick at each fourth
	curveLabel = 8   // columns of the scale on the left
	curveMost  = 150 // columns of the picture, however wide the terminal
)

// canvas is a picture of characters: the axis of the sweep by ratios, throughput from 0.
type canvas struct {
	cells    [][]rune
	from, to float64 // logarithms of the axis
	top      float64 // calls per second
}

func newCanvas(points []experiment.Point, width int) *canvas {
	c := &canvas{from: math.Log(float64(points[0].Value)), to: math.Log(float64(points[len(points)-1].Value))}
	for _, p := range points {
		c.top = max(c.top, p.High)
	}
	c.top = 3 * round(c.top/3)
	for range curveRows {
		c.cells = append(c.cells, []rune(strings.Repeat(" ", width)))
	}
	return c
}

// round is the next round number that is not below v.
func round(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if v <= k*unit*(1+1e-9) {
			return k * unit
		}
	}
	return 10 * unit
}

func (c *canvas) width() int { return len(c.cells[0]) }

func (c *canvas) column(n float64) int {
	return int(math.Round(layout.Fraction((math.Log(n)-c.from)/(c.to-c.from)) * float64(c.width()-1)))
}

// value is that of a column.
func (c *canvas) value(column int) float64 {
	return math.Exp(c.from + (c.to-c.from)*float64(column)/float64(c.width()-1))
}

func (c *canvas) row(perSecond float64) int {
	return curveRows - 1 - int(math.Round(layout.Fraction(perSecond/c.top)*(curveRows-1)))
}

// curve draws throughput over the axis: the points with their spread, the law, the knee.
func (p *page) curve(s *experiment.Sweep) {
	if len(s.Points) < 2 {
		return
	}
	c := newCanvas(s.Points, min(p.Style.Width-curveLabel-1, curveMost))
	if !(c.top > 0) {
		return
	}
	dot, point, bar, knee := '·', '●', '│', '┊'
	if !p.Style.Unicode {
		dot, point, bar, knee = '.', 'o', '|', ':'
	}
	if s.Knee != nil {
		for r := range curveRows {
			c.cells[r][c.column(s.Knee.Value)] = knee
		}
	}
	if s.Law != nil {
		for x := range c.width() {
			if v := s.Law.At(c.value(x)); v <= c.top {
				c.cells[c.row(v)][x] = dot
			}
		}
	}
	for _, pt := range s.Points {
		x := c.column(float64(pt.Value))
		for r := c.row(pt.High); r <= c.row(pt.Low); r++ {
			c.cells[r][x] = bar
		}
		mark := point
		if pt.GeneratorLimited {
			mark = 'x'
		}
		c.cells[c.row(pt.RequestsPerSecond)][x] = mark
	}
	p.drawn(s, c)
}

// drawn prints the picture with its scales.
func (p *page) drawn(s *experiment.Sweep, c *canvas) {
	p.Gap()
	p.Line(p.In(layout.Dim, "requests per second by "+s.Axis))
	for r, cells := range c.cells {
		label := ""
		if r%4 == 0 {
			label = format.Compact(int64(math.Round(c.top * float64(curveRows-1-r) / (curveRows - 1))))
		}
		p.Line(layout.PadLeft(label, curveLabel-1) + " " + p.In(layout.Blue, strings.TrimRight(string(cells), " ")))
	}
	ticks := []rune(strings.Repeat(" ", c.width()))
	free := 0
	for _, pt := range s.Points {
		text := "|" + fmt.Sprint(pt.Value)
		at := c.column(float64(pt.Value))
		if over := at + len(text) - len(ticks); over > 0 {
			text, at = fmt.Sprint(pt.Value)+"|", at-len(text)+1
		}
		free = write(ticks, at, free, text)
	}
	p.Line(strings.Repeat(" ", curveLabel) + string(ticks))
	if s.Knee != nil {
		knee := []rune(strings.Repeat(" ", c.width()))
		at := c.column(s.Knee.Value)
		text := "^knee"
		if at+len(text) > len(knee) {
			text, at = "knee^", at-len(text)+1
		}
		write(knee, at, 0, text)
		p.Line(strings.Repeat(" ", curveLabel) + p.In(layout.Dim, string(knee)))
	}
}
