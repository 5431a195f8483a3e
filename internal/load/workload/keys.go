package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrUsage: an option has no valid value, or contradicts the others.
var ErrUsage = errors.New("usage")

// usageError matches ErrUsage, without its text.
type usageError struct{ error }

func (e usageError) Unwrap() []error { return []error{e.error, ErrUsage} }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Keys is a range of keys, by their numbers, and their distribution.
type Keys struct {
	Low, High uint64 // inclusive
	Dist      Dist
	Exponent  float64 // of Zipf and Latest, above 0
	Centre    float64 // of Gaussian, a number of a key
	Deviation float64 // of Gaussian, in numbers of keys, above 0
}

// Dist is a distribution of the keys.
type Dist uint8

// The distributions. With Zipf the calls per key fall with the rank of the key to the power of the exponent, and the
// ranks are spread over the range, so that hot keys are not neighbours; Latest is Zipf with the highest number first.
// With Sequential each of n streams of a workload takes every n-th key, so that together they visit all of them.
const (
	Uniform Dist = iota
	Zipf
	Gaussian
	Sequential
	Latest
)

var distNames = [...]string{"uniform", "zipf", "gaussian", "sequential", "latest"}

func (d Dist) String() string { return distNames[d] }

const (
	keyDigits       = 12
	maxKey          = 1e12 - 1 // with keyDigits digits
	defaultExponent = 0.99     // as YCSB has it
)

// ParseKeys reads a number of keys ("1000000": those from 0) or a range ("1000-1999"), both with k, m and g for
// thousands, millions and billions. They are uniform.
func ParseKeys(text string) (Keys, error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		n, err := parseCount(text)
		if err != nil || n == 0 || n > maxKey+1 {
			return Keys{}, usage("keys %q: want a number of keys, 1 to 1000000000000, or a range as 1000-1999", text)
		}
		return Keys{High: n - 1}, nil
	}
	l, err1 := parseCount(low)
	h, err2 := parseCount(high)
	if err1 != nil || err2 != nil || l > h || h > maxKey {
		return Keys{}, usage("keys %q: want a range as 1000-1999 of numbers up to 999999999999, the lower first", text)
	}
	return Keys{Low: l, High: h}, nil
}

// parseCount reads a whole number with an optional k, m or g.
func parseCount(text string) (uint64, error) {
	factor := uint64(1)
	if n := len(text); n > 1 {
		switch text[n-1] | 0x20 {
		case 'k':
			factor = 1_000
		case 'm':
			factor = 1_000_000
		case 'g':
			factor = 1_000_000_000
		}
		if factor > 1 {
			text = text[:n-1]
		}
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err == nil && v > math.MaxUint64/factor {
		err = strconv.ErrRange
	}
	return v * factor, err
}

// ParseDist gives the keys another distribution: "uniform", "zipf" or "zipf:EXPONENT", "latest" or "latest:EXPONENT",
// "gaussian" (the centre of the range, a sixth of it as deviation) or "gaussian:CENTRE,DEVIATION" in numbers of keys,
// "sequential".
func (k Keys) ParseDist(text string) (Keys, error) {
	name, argument, has := strings.Cut(text, ":")
	wrong := func(want string) (Keys, error) { return Keys{}, usage("distribution %q of keys: want %s", text, want) }
	switch name {
	case "uniform", "sequential":
		if has {
			return wrong(name + " without anything after it")
		}
		k.Dist = Uniform
		if name == "sequential" {
			k.Dist = Sequential
		}
	case "zipf", "latest":
		k.Dist, k.Exponent = Zipf, defaultExponent
		if name == "latest" {
			k.Dist = Latest
		}
		if has {
			e, err := strconv.ParseFloat(argument, 64)
			if err != nil || !(e > 0 && e <= 10) {
				return wrong(name + ":EXPONENT above 0, at most 10")
			}
			k.Exponent = e
		}
	case "gaussian":
		k.Dist, k.Centre, k.Deviation = Gaussian, float64(k.Low)+float64(k.High-k.Low)/2, float64(k.High-k.Low+1)/6
		if has {
			c, d, both := strings.Cut(argument, ",")
			centre, err1 := strconv.ParseFloat(c, 64)
			deviation, err2 := strconv.ParseFloat(d, 64)
			if !both || err1 != nil || err2 != nil || !(deviation > 0 && deviation <= maxKey) ||
				!(centre >= float64(k.Low) && centre <= float64(k.High)) {
				return wrong(fmt.Sprintf("gaussian:CENTRE,DEVIATION with a centre in %d-%d and a deviation above 0",
					k.Low, k.High))
			}
			k.Centre, k.Deviation = centre, deviation
		}
	default:
		return wrong(strings.Join(distNames[:], ", "))
	}
	return k, nil
}

// count is the number of keys.
func (k Keys) count() uint64 { return k.High - k.Low + 1 }

func (k Keys) check() error {
	switch {
	case k.Low > k.High || k.High > maxKey:
		return usage("keys %d-%d: want a range of numbers up to 999999999999, the lower first", k.Low, k.High)
	case (k.Dist == Zipf || k.Dist == Latest) && !(k.Exponent > 0):
		return usage("%v keys: the exponent is %v; it must be above 0", k.Dist, k.Exponent)
	case k.Dist == Gaussian && !(k.Deviation > 0):
		return usage("gaussian keys: the deviation is %v; it must be above 0", k.Deviation)
	case k.Dist > Latest:
		return usage("keys: distribution %d is not known", k.Dist)
	}
	return nil
}

// drawer draws keys in constant time. It is not changed after newDrawer.
type drawer struct {
	keys     Keys
	n        uint64
	zipf     zipf
	multiple uint64  // spreads ranks over the range: rank × multiple mod n
	cdfLow   float64 // gaussian: erf of the ends of the range
	cdfHigh  float64
}

func newDrawer(k Keys) drawer {
	d := drawer{keys: k, n: k.count()}
	switch k.Dist {
	case Zipf, Latest:
		d.zipf = newZipf(d.n, k.Exponent)
		d.multiple = coprime(d.n)
	case Gaussian:
		at := func(x float64) float64 { return math.Erf((x - k.Centre) / (k.Deviation * math.Sqrt2)) }
		d.cdfLow, d.cdfHigh = at(float64(k.Low)-0.5), at(float64(k.High)+0.5)
	}
	return d
}

// draw draws a key. next is the position of a sequential stream, an offset into the range; draw adds step to it.
func (d *drawer) draw(r *rng, next *uint64, step uint64) uint64 {
	switch d.keys.Dist {
	case Uniform:
		return d.keys.Low + r.below(d.n)
	case Zipf:
		rank := d.zipf.draw(r)
		return d.keys.Low + mulMod(rank, d.multiple, d.n)
	case Latest:
		return d.keys.High - d.zipf.draw(r)
	case Gaussian:
		return d.gaussian(r)
	}
	at := *next
	if *next += step; *next >= d.n {
		*next = at % step // back to the first of this stream
	}
	return d.keys.Low + at
}

// gaussian inverts the cumulative distribution, truncated to the range, so that no draw needs to be repeated.
func (d *drawer) gaussian(r *rng) uint64 {
	u := d.cdfLow + r.float()*(d.cdfHigh-d.cdfLow)
	x := math.Round(d.keys.Centre + d.keys.Deviation*math.Sqrt2*math.Erfinv(u))
	return uint64(min(max(x, float64(d.keys.Low)), float64(d.keys.High)))
}
