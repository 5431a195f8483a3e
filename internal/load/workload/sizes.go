package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxValueBytes is the largest value: the limit of servers (proto-max-bulk-len).
const MaxValueBytes = 512 << 20

// quantiles is the number of sizes that stand for a distribution other than a range: a draw costs one table lookup, and
// the largest size of a lognormal distribution is 3.7 sigma above its median.
const quantiles = 4096

// Sizes are the sizes of values in bytes: a range, or a list of quantiles.
type Sizes struct {
	low, high int
	table     []int // ascending; nil: low to high, all equally likely
}

// FixedSize is one size in bytes.
func FixedSize(bytes int) Sizes { return Sizes{low: bytes, high: bytes} }

// Max is the largest size in bytes, Mean the mean.
func (s Sizes) Max() int { return s.high }

func (s Sizes) Mean() float64 {
	if s.table == nil {
		return float64(s.low+s.high) / 2
	}
	sum := 0.0
	for _, n := range s.table {
		sum += float64(n)
	}
	return sum / float64(len(s.table))
}

// ParseSizes reads sizes of values in bytes: "100"; "100-1000", all equally likely; "lognormal:MEDIAN,SIGMA", sigma
// that of the natural logarithm; "100:3,1k:1", sizes with their weights; "file:PATH", a size, or a size and its weight,
// per line. Units are those of redis.conf: k is 1000, kb is 1024, and so m, mb. read gets the file.
func ParseSizes(text string, read func(path string) ([]byte, error)) (Sizes, error) {
	switch name, argument, _ := strings.Cut(text, ":"); {
	case name == "lognormal":
		return lognormal(text, argument)
	case name == "file":
		body, err := read(argument)
		if err != nil {
			return Sizes{}, usage("sizes of values: %v", err)
		}
		return sizesOfLines(argument, body)
	case strings.ContainsAny(text, ":,"):
		return weighted(text, strings.Split(text, ","), ":")
	}
	low, high, isRange := strings.Cut(text, "-")
	l, err1 := parseBytes(low)
	if !isRange && err1 == nil {
		return FixedSize(l), nil
	}
	h, err2 := parseBytes(high)
	if err1 != nil || err2 != nil || l > h {
		return Sizes{}, usage("size of values %q: want bytes as 100, 4kb, 100-1000, lognormal:100,1.5, 100:3,1kb:1 "+
			"or file:PATH, at most 512mb", text)
	}
	return Sizes{low: l, high: h}, nil
}

// parseBytes reads a size with a unit of redis.conf.
func parseBytes(text string) (int, error) {
	digits := strings.TrimRight(strings.ToLower(text), "kmb")
	factor, known := map[string]uint64{
		"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6,
		"mb": 1 << 20,
	}[strings.ToLower(text)[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || !known || n*factor > MaxValueBytes {
		return 0, fmt.Errorf("%q is not a size up to 512mb", text)
	}
	return int(n * factor), nil
}

func lognormal(text, argument string) (Sizes, error) {
	m, sg, both := strings.Cut(argument, ",")
	median, err1 := parseBytes(m)
	sigma, err2 := strconv.ParseFloat(sg, 64)
	if !both || err1 != nil || err2 != nil || median < 1 || !(sigma >= 0 && sigma <= 5) {
		return Sizes{}, usage("size of values %q: want lognormal:MEDIAN,SIGMA with a median in bytes and a sigma of "+
			"0 to 5", text)
	}
	s := Sizes{table: make([]int, quantiles)}
	for i := range s.table {
		z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/quantiles-1)
		s.table[i] = int(min(max(math.Round(float64(median)*math.Exp(sigma*z)), 1), MaxValueBytes))
	}
	return s.bounded(), nil
}

func (s Sizes) bounded() Sizes {
	s.low, s.high = s.table[0], s.table[len(s.table)-1]
	return s
}

func sizesOfLines(path string, body []byte) (Sizes, error) {
	var lines []string
	for lineScan := bufio.NewScanner(bytes.NewReader(body)); lineScan.Scan(); {
		if line := strings.TrimSpace(lineScan.Text()); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return weighted(path, lines, " ")
}

// weighted makes quantiles of sizes with weights. The shares are exact to 1/quantiles; each size with a weight has at
// least one.
func weighted(what string, items []string, separator string) (Sizes, error) {
	type item struct {
		bytes  int
		weight float64
	}
	var all []item
	total := 0.0
	for _, text := range items {
		size, weight, has := strings.Cut(text, separator)
		n, err := parseBytes(strings.TrimSpace(size))
		w := 1.0
		if has && err == nil {
			w, err = strconv.ParseFloat(strings.TrimSpace(weight), 64)
		}
		if err != nil || !(w >= 0 && w <= 1e12) {
			return Sizes{}, usage("sizes of values in %s: %q is not SIZE or SIZE%sWEIGHT, with at most 512mb and a "+
				"weight of 0 to 1e12", what, text, separator)
		}
		if w > 0 {
			all, total = append(all, item{n, w}), total+w
		}
	}
	if len(all) == 0 {
		return Sizes{}, usage("sizes of values in %s: there is none", what)
	}
	slots := max(quantiles, len(all))
	var s Sizes
	slices.SortFunc(all, func(a, b item) int { return a.bytes - b.bytes })
	cumulated := 0.0
	for i, it := range all {
		cumulated += it.weight
		until := max(int(math.Round(cumulated/total*float64(slots))), len(s.table)+1)
		if i == len(all)-1 {
			until = max(slots, len(s.table)+1)
		}
		for len(s.table) < until {
			s.table = append(s.table, it.bytes)
		}
	}
	return s.bounded(), nil
}

// fixed is the size, if there is only one.
func (s Sizes) fixed() (int, bool) { return s.low, s.low == s.high }

func (s *Sizes) draw(r *rng) int {
	switch {
	case s.low == s.high:
		return s.low
	case s.table != nil:
		return s.table[r.below(uint64(len(s.table)))]
	}
	return s.low + int(r.below(uint64(s.high-s.low+1)))
}

// has: a value can have this size.
func (s *Sizes) has(bytes int) bool {
	if s.table == nil {
		return bytes >= s.low && bytes <= s.high
	}
	_, found := slices.BinarySearch(s.table, bytes)
	return found
}
