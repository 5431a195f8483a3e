package compare

import (
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// OverTime is how many calls of a population took how long, by time.
type OverTime struct {
	Population string
	Start      time.Time
	Step       time.Duration // of a column
	// UpToNs are the upper ends of the rows in nanoseconds; the last row has all that is longer, too.
	UpToNs []int64
	Calls  [][]int64 // by column and row
	// Since is the first of the columns that the calls of a column are of: itself, where no more is known.
	Since []int
}

const (
	// columnsOverTime is into how many columns a watch is divided at most.
	// Bound: arithmetic, the size of a picture.
	columnsOverTime = 120
	// firstRowNs is the upper end of the first row; all others are below endOfRowsNs.
	// Bound: arithmetic, the size of a picture.
	firstRowNs, endOfRowsNs = int64(10e3), int64(10e9)
)

// latencyRows are the upper ends of the rows: three for each power of ten.
func latencyRows() (out []int64) {
	for of := firstRowNs; of < endOfRowsNs; of *= 10 {
		out = append(out, of, 2*of, 5*of)
	}
	return out
}

// CallsOverTime are those of the first population of a diagnosis that was timed; ok is false where none was, and where
// the recording is so long that it is read in sums only.
func CallsOverTime(rec *recording.Recording, d verdict.Diagnosis) (o OverTime, ok bool) {
	for _, p := range d.Populations {
		source, prefix, timed := histogramsOf(p)
		if !timed {
			continue
		}
		if o, ok = callsOverTime(rec, source, prefix); ok {
			o.Population = p.Name
			return o, true
		}
	}
	return OverTime{}, false
}

// signOf says how a histogram counts among those of a prefix: calls at the clients' end whose threads waited longer
// count for that.
func signOf(op, prefix string) int64 {
	switch side, _, _ := strings.Cut(op, " "); {
	case strings.HasPrefix(op, prefix):
		return 1
	case prefix != recording.Client+" ":
		return 0
	case side == recording.Operations, side == recording.Dialled:
		return 1
	case side == recording.AwaitedCalls:
		return -1
	}
	return 0
}

func callsOverTime(rec *recording.Recording, source, prefix string) (OverTime, bool) {
	start, end := rec.Window()
	step := max((end-start)/columnsOverTime/1e9, 1) * 1e9
	o := OverTime{Start: time.Unix(0, start).UTC(), Step: time.Duration(step), UpToNs: latencyRows()}
	columns := min((end-start)/step+1, 2*columnsOverTime)
	o.Calls, o.Since = make([][]int64, columns), make([]int, columns)
	for i := range o.Calls {
		o.Calls[i], o.Since[i] = make([]int64, len(o.UpToNs)), i
	}
	found, counted := false, make([]bool, columns)
	if source == recording.SourceTap {
		start += int64(time.Second) // its histograms bear the second in which they were read, after the calls
	}
	for _, h := range rec.Histograms {
		at := (h.Second*1e9 - start + 999_999_999) / step // the second in which the watch begins counts for the first
		sign := signOf(h.Op, prefix)
		if h.Source != source || sign == 0 || at < 0 || at >= columns {
			continue
		}
		one, err := hdrhistogram.Decode(h.HDR)
		if err != nil {
			continue // damaged, or summed up while it was read
		}
		found, counted[at] = true, true
		for _, b := range one.Distribution() {
			row := 0
			for row < len(o.UpToNs)-1 && b.From >= o.UpToNs[row] {
				row++
			}
			o.Calls[at][row] = max(o.Calls[at][row]+sign*b.Count, 0)
		}
	}
	for i := 2; i < len(counted) && source == recording.SourceTap; i++ {
		// The tap reads its histograms a little less than once a second: now and then a second has none.
		if counted[i-2] && !counted[i-1] && counted[i] {
			o.Since[i] = i - 1
		}
	}
	if last := len(counted) - 1; last > 0 && !counted[last] { // less than a whole step
		o.Calls, o.Since = o.Calls[:last], o.Since[:last]
	}
	return o, found
}
