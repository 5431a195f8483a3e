package grade

import (
	"slices"

	"slowpath/internal/lab/scenario"
)

// Summary is the result of all runs.
type Summary struct {
	Schema       string                    `json:"schema"`
	Results      []Result                  `json:"results"`
	Named        int                       `json:"named_first"` // scenarios whose cause is the first finding
	Scenarios    int                       `json:"incidents"`
	Healthy      int                       `json:"healthy_kept"` // healthy loads with the verdict healthy
	HealthyTotal int                       `json:"healthy"`
	Skipped      int                       `json:"skipped"`
	Confusion    map[string]map[string]int `json:"confusion"` // truth → verdict → count
	Unexplained  Unexplained               `json:"unexplained"`
}

// Schema names the JSON of a Summary.
const Schema = "slowpath.grade/v1"

// Summarise sums up the results of runs.
func Summarise(rs []Result) Summary {
	s := Summary{Schema: Schema, Results: rs, Confusion: map[string]map[string]int{}}
	for _, r := range rs {
		if r.Skipped != "" {
			s.Skipped++
			continue
		}
		if r.Truth == scenario.HealthyCause {
			s.HealthyTotal++
			if r.Right() {
				s.Healthy++
			}
		} else {
			s.Scenarios++
			if r.Right() {
				s.Named++
			}
		}
		verdict := r.Got
		if r.Error != "" {
			verdict = "error"
		}
		if s.Confusion[r.Truth] == nil {
			s.Confusion[r.Truth] = map[string]int{}
		}
		s.Confusion[r.Truth][verdict]++
	}
	s.Unexplained = unexplainedOf(rs)
	return s
}

// Passed reports whether all runs were right that were not skipped.
func (s Summary) Passed() bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool { return r.Skipped == "" && !r.Right() })
}
