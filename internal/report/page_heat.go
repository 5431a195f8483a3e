package report

import (
	"fmt"
	"math"
	"time"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
)

// heatPage is a drawing that is as wide as the window, with rows as high as a line.
type heatPage struct {
	Title, Note   string
	Width, Height int // in units of the drawing
	Cells         []heatCell
	Rows          []string
	Times         []heatText // X in percent
	Limit         *heatText
}

type heatCell struct{ X, Y, W, H, Opacity, Said string }

type heatText struct{ X, Y, W, Said string }

// Measures of the drawing of calls over time, in its own units.
const (
	heatWidth, heatCellHeight = 1000, 15
	heatTimes                 = 5 // that are written below it, at most
)

// heatOf draws how many calls took how long, by time: stronger is more, by the logarithm.
func heatOf(o compare.OverTime, d verdict.Diagnosis) *heatPage {
	first, last, most := len(o.UpToNs), -1, int64(0)
	for _, column := range o.Calls {
		for row, n := range column {
			if n > 0 {
				first, last, most = min(first, row), max(last, row), max(most, n)
			}
		}
	}
	if last < 0 {
		return nil
	}
	whose := map[string]string{"users": "your calls", "load": "the calls of the load", "probe": "slowpath's own calls"}
	v := &heatPage{
		Title: "How long " + whose[o.Population] + " took, over time",
		Note: "Each column is " + format.Brief(int64(o.Step)) + ", each row the calls that took up to the time at " +
			"its left; the stronger the colour, the more calls.",
		Width: heatWidth, Height: (last - first + 1) * heatCellHeight,
		Cells: heatCells(o, last, most),
	}
	for row := last; row >= first; row-- {
		v.Rows = append(v.Rows, format.Brief(o.UpToNs[row]))
	}
	for at := 0; 7*at < 6*len(o.Calls); at += (len(o.Calls) + heatTimes - 1) / heatTimes { // the last has room
		v.Times = append(v.Times, heatText{
			X:    fmt.Sprintf("%.2f", 100*float64(at)/float64(len(o.Calls))),
			Said: o.Start.Add(time.Duration(at) * o.Step).Format("15:04:05"),
		})
	}
	v.Limit = heatLimit(o.UpToNs[:last+1], first, d.Latency.SlowThresholdNs)
	if v.Limit != nil {
		v.Note += " The line is the slow threshold, " + format.Brief(d.Latency.SlowThresholdNs) + "."
	}
	return v
}

// heatCells are the cells with calls; last is the row at the top.
func heatCells(o compare.OverTime, last int, most int64) (cells []heatCell) {
	width := float64(heatWidth) / float64(len(o.Calls))
	for i, column := range o.Calls {
		since := i
		if i < len(o.Since) {
			since = o.Since[i]
		}
		for row, n := range column {
			if n <= 0 {
				continue
			}
			cells = append(cells, heatCell{
				fmt.Sprintf("%.1f", float64(since)*width), fmt.Sprint((last - row) * heatCellHeight),
				fmt.Sprintf("%.1f", max(float64(i-since+1)*width-.5, 1)), fmt.Sprint(heatCellHeight - 1),
				fmt.Sprintf("%.2f", .15+.85*math.Log1p(float64(n))/math.Log1p(float64(most))),
				fmt.Sprintf("%s: %s up to %s", o.Start.Add(time.Duration(since)*o.Step).Format("15:04:05 UTC"),
					format.Count(int(n), "call"), format.Brief(o.UpToNs[row])),
			})
		}
	}
	return cells
}

// heatLimit is the line of the slow threshold in the rows from first on, the last at the top; nil where it is in none.
func heatLimit(upToNs []int64, first int, thresholdNs int64) *heatText {
	for row := max(first, 1); row < len(upToNs); row++ {
		low, high := upToNs[row-1], upToNs[row]
		if thresholdNs <= low || thresholdNs > high {
			continue
		}
		above := math.Log(float64(high)/float64(thresholdNs)) / math.Log(float64(high)/float64(low)) // part of the row
		return &heatText{
			W: fmt.Sprint(heatWidth), Y: fmt.Sprintf("%.1f", heatCellHeight*(float64(len(upToNs)-1-row)+above)),
			Said: "slow from " + format.Brief(thresholdNs) + " on",
		}
	}
	return nil
}
