package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Axes of a sweep: the settings that it can change.
const (
	Connections = "connections"
	Pipeline    = "pipeline"
	Threads     = "threads"
	Rate        = "rate"       // calls per second, an open loop
	ValueSize   = "value-size" // bytes
)

var axes = []string{Connections, Pipeline, Threads, Rate, ValueSize}

// Axis is a setting and the values that a sweep gives it, in ascending order. All are whole numbers of at least 1.
type Axis struct {
	Name   string
	Values []int
}

// concurrency: along this axis the universal scalability law describes throughput.
func (a Axis) concurrency() bool {
	return a.Name == Connections || a.Name == Pipeline || a.Name == Threads
}

// Limits of an axis: more points than anyone waits for, and more of anything than a machine has.
const (
	maxValues = 1000
	maxValue  = 1_000_000_000
)

// ParseAxis reads NAME=VALUES: a list 1,2,4,8; a range 1..1000 with the steps 1, 2, 5, 10, …; or 1..1000/12, 12 values
// at equal ratios.
func ParseAxis(s string) (Axis, error) {
	name, values, ok := strings.Cut(s, "=")
	if !ok || !slices.Contains(axes, name) {
		return Axis{}, fmt.Errorf("%q: give SETTING=VALUES such as connections=1..1000; settings: %s", s,
			strings.Join(axes, ", "))
	}
	vs, err := ParseValues(values)
	if err != nil {
		return Axis{}, fmt.Errorf("%q: %w", s, err)
	}
	if len(vs) < 2 {
		return Axis{}, fmt.Errorf("%q: a sweep needs at least 2 different values", s)
	}
	return Axis{name, vs}, nil
}

// ParseValues reads the values of an axis, as after the = of ParseAxis. They are in ascending order, each once.
func ParseValues(s string) ([]int, error) {
	if strings.Contains(s, "..") {
		return parseRange(s)
	}
	return parseList(s)
}

func parseList(s string) ([]int, error) {
	var vs []int
	for text := range strings.SplitSeq(s, ",") {
		v, err := parseValue(text)
		if err != nil {
			return nil, err
		}
		if vs = append(vs, v); len(vs) > maxValues {
			return nil, fmt.Errorf("more than %d values", maxValues)
		}
	}
	slices.Sort(vs)
	return slices.Compact(vs), nil
}

func parseRange(s string) ([]int, error) {
	s, points, counted := strings.Cut(s, "/")
	from, to, _ := strings.Cut(s, "..")
	a, err := parseValue(from)
	if err != nil {
		return nil, err
	}
	b, err := parseValue(to)
	if err != nil {
		return nil, err
	}
	if a >= b {
		return nil, fmt.Errorf("%d..%d: the first must be below the last", a, b)
	}
	if !counted {
		return steps(a, b), nil
	}
	n, err := strconv.Atoi(points)
	if err != nil || n < 2 || n > maxValues {
		return nil, fmt.Errorf("/%s: the number of values is from 2 to %d", points, maxValues)
	}
	return geometric(a, b, n), nil
}

func parseValue(s string) (int, error) {
	v, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || v < 1 || v > maxValue {
		return 0, errors.New("values are whole numbers, at least 1")
	}
	return v, nil
}

// steps are a, those of 1, 2, 5, 10, 20, 50, … between, and b.
func steps(a, b int) []int {
	vs := []int{a}
	for unit := 1; unit < b; unit *= 10 {
		for _, k := range []int{1, 2, 5} {
			if v := k * unit; v > a && v < b {
				vs = append(vs, v)
			}
		}
	}
	return append(vs, b)
}

// geometric are n values from a to b at about equal ratios; fewer where rounding makes two the same.
func geometric(a, b, n int) []int {
	vs := make([]int, n)
	for i := range vs {
		vs[i] = int(math.Round(float64(a) * math.Pow(float64(b)/float64(a), float64(i)/float64(n-1))))
	}
	vs[n-1] = b
	return slices.Compact(vs)
}
