package grade

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"slowpath/internal/stats"
)

// Unexplained is the share of the time that callers lost which no finding explains, over the runs with slow calls.
type Unexplained struct {
	Runs     int     `json:"runs"`
	Share    float64 `json:"share"`  // of the lost time of all runs together
	Median   float64 `json:"median"` // of the shares of the runs; of an even number of runs the higher one of two
	MedianOf string  `json:"median_of"`
	Worst    float64 `json:"worst"`
	WorstOf  string  `json:"worst_of"` // scenario
}

// Unexplained returns the share of the lost time that no finding explains; ok is false where none was lost.
func (r Result) Unexplained() (share float64, ok bool) {
	if r.Excess.Ns <= 0 {
		return 0, false
	}
	return float64(r.Excess.UnexplainedNs) / float64(r.Excess.Ns), true
}

// withExcess returns the runs that had slow calls, the best explained first.
func withExcess(rs []Result) []Result {
	rs = slices.DeleteFunc(slices.Clone(rs), func(r Result) bool { return r.Excess.Ns <= 0 })
	slices.SortStableFunc(rs, func(a, b Result) int {
		x, _ := a.Unexplained()
		y, _ := b.Unexplained()
		return cmp.Compare(x, y)
	})
	return rs
}

func unexplainedOf(rs []Result) Unexplained {
	rs = withExcess(rs)
	u := Unexplained{Runs: len(rs)}
	if len(rs) == 0 {
		return u
	}
	var all Result
	for _, r := range rs {
		all.Excess.Ns += r.Excess.Ns
		all.Excess.UnexplainedNs += r.Excess.UnexplainedNs
	}
	median, worst := stats.MedianUpper(rs), rs[len(rs)-1]
	u.Share, _ = all.Unexplained()
	u.Median, _ = median.Unexplained()
	u.Worst, _ = worst.Unexplained()
	u.MedianOf, u.WorstOf = median.Scenario, worst.Scenario
	return u
}

// unexplainedTable prints the share of each run, the worst first, and that of all.
func unexplainedTable(w io.Writer, s Summary) {
	rs := withExcess(s.Results)
	if len(rs) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-32s %12s %12s\n", "scenario", "lost", "unexplained")
	for _, r := range slices.Backward(rs) {
		share, _ := r.Unexplained()
		fmt.Fprintf(w, "%-32s %10.2f s %10.1f %%\n", r.Scenario, float64(r.Excess.Ns)/1e9, share*100)
	}
	u := s.Unexplained
	fmt.Fprintf(w, "\nunexplained: %.1f %% of the lost time of %d runs together; median %.1f %% (%s), worst %.1f %% "+
		"(%s)\n",
		u.Share*100, u.Runs, u.Median*100, u.MedianOf, u.Worst*100, u.WorstOf)
}
