package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Goal is a service level objective of latency: this part of the calls takes no longer than Most.
type Goal struct {
	Quantile float64 // 0.99
	Most     time.Duration
}

// Bounds of a goal.
const (
	leastQuantile = 0.5 // below the median nobody sets a goal
	mostQuantile  = 0.9999
	longestGoal   = time.Hour
)

// ParseGoal reads "p99=10ms". Its error is one line that ends in an example.
func ParseGoal(s string) (Goal, error) {
	name, most, ok := strings.Cut(s, "=")
	percent, isQuantile := strings.CutPrefix(strings.TrimSpace(name), "p")
	q, err := strconv.ParseFloat(percent, 64)
	d, badTime := time.ParseDuration(strings.TrimSpace(most))
	q = math.Round(100*q) / 10_000 // 99.9 is no number of base two
	if !ok || !isQuantile || err != nil || badTime != nil || !(q >= leastQuantile && q <= mostQuantile) ||
		d <= 0 || d > longestGoal {
		return Goal{}, fmt.Errorf("%q: give a percentile from p50 to p99.99 and a duration, such as p99=10ms", s)
	}
	return Goal{q, d}, nil
}

// String is what ParseGoal reads.
func (g Goal) String() string { return g.Name() + "=" + g.Most.String() }

// Name is p99.
func (g Goal) Name() string { return "p" + strconv.FormatFloat(100*g.Quantile, 'g', 6, 64) }
