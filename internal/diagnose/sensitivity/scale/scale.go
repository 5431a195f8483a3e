// Package scale multiplies one bound of the diagnosis at a time by a factor, and notes which bounds are read. Only the
// build of internal/diagnose/sensitivity uses it: there each use of a bound is a call of Of.
package scale

import (
	"math"
	"time"
)

// Duration is the type of times, for files that do not import it.
type Duration = time.Duration

// Number is a type that bounds have.
type Number interface{ ~int | ~int64 | ~float64 }

var (
	which  = -1
	factor = 1.0
	read   []bool
)

// Set makes all bounds of n as they are, but one, of which Of returns the product with a factor; -1 for none.
func Set(n, bound int, by float64) {
	which, factor = bound, by
	read = make([]bool, n)
}

// Read is which bounds have been read since Set. It is valid until the next Set.
func Read() []bool { return read }

// Of is a bound's value, or that times the factor. Whole numbers change by one at least.
func Of[T Number](bound int, value T) T {
	if bound < len(read) {
		read[bound] = true
	}
	if bound != which || factor == 1 {
		return value
	}
	by := float64(value) * factor
	if T(1)/T(2) != 0 { // not a whole number
		return T(by)
	}
	scaled := T(math.Round(by))
	switch {
	case scaled != value:
		return scaled
	case factor > 1:
		return value + 1
	}
	return value - 1
}
