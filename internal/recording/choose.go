package recording

import (
	"cmp"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// choose marks those rows of a class that are to be deleted from a block: about half of them.
func choose(c *class, block []row, rows []int, gone []bool, r *round) {
	switch {
	case c.name == slowCalls:
		slices.SortStableFunc(rows, func(a, b int) int {
			return cmp.Compare(durationOf(block[a].args), durationOf(block[b].args))
		})
		for _, i := range rows[:len(rows)/2] {
			gone[i] = true
		}
	case c.into == eventTable:
		apart := slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return r.overlapsSlow(block[i].args) })
		if len(apart) < len(rows)/2 { // calls were slow most of the time
			apart = rows
		}
		chooseByKey(block, apart, gone)
	case c.into == segmentTable: // they go with their calls
	case c.into == callTable:
		chooseByKey(block, rows, gone)
	default:
		chooseOfSeries(block, rows, gone)
	}
}

// chooseByKey marks about half of the rows by their key, so that the same connections stay everywhere.
func chooseByKey(block []row, rows []int, gone []bool) {
	keys := make([]uint64, len(rows))
	for n, i := range rows {
		keys[n] = keyOf(block[i].into, block[i].args, uint64(n))
	}
	for level := 1; level < 64; level++ {
		stay := 0
		for _, k := range keys {
			if k < threshold(level) {
				stay++
			}
		}
		if stay > len(rows)*3/4 {
			continue
		}
		for n, i := range rows {
			gone[i] = keys[n] >= threshold(level)
			if stay == 0 {
				gone[i] = n%2 == 1
			}
		}
		return
	}
}

// chooseOfSeries marks every second row of each series, if there are such, and else every second row. A first value
// stays, since it holds until the next one.
func chooseOfSeries(block []row, rows []int, gone []bool) {
	before := map[string][]int{}
	marked := 0
	for _, i := range rows {
		name := seriesOf(block[i])
		before[name] = append(before[name], i)
		if n := len(before[name]); n%2 == 0 {
			gone[i] = true
			marked++
			addHistogram(&block[before[name][n-2]], block[i])
		}
	}
	if marked > 0 {
		return
	}
	for n, i := range rows {
		gone[i] = n%2 == 1
	}
}

// seriesOf is what a row is about: two of the same series say the same at different times. Numbers are no part of it.
func seriesOf(r row) string {
	name := text(r.args[1]) + "\x00" + text(r.args[2])
	if r.into != profileTable && r.into != connUseTable { // which have no source
		name += "\x00" + text(r.args[3])
	}
	return name
}

// addHistogram adds the calls of a histogram to the one before it.
func addHistogram(into *row, r row) {
	if r.into != histogramTable {
		return
	}
	a, aOK := into.args[4].([]byte)
	b, bOK := r.args[4].([]byte)
	if !aOK || !bOK {
		return
	}
	sum, err := hdrhistogram.Decode(a)
	if err != nil {
		return
	}
	one, err := hdrhistogram.Decode(b)
	if err != nil {
		return
	}
	sum.Merge(one)
	if text, err := sum.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		into.args[4] = text
	}
}
