package report

import (
	"fmt"
	"math"
)

// duration prints nanoseconds with three significant digits: 84.0 µs, 12.3 ms, 1.52 s.
func duration(ns int64) string {
	if ns == 0 {
		return "0 µs"
	}
	v, unit := float64(ns)/1e3, "µs"
	for _, next := range []string{"ms", "s"} {
		if math.Abs(v) < 999.5 {
			break
		}
		v, unit = v/1e3, next
	}
	return digits(v) + " " + unit
}

// digits prints a number with three significant digits and no exponent.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a < 0.0995:
		return fmt.Sprintf("%.3f", v)
	case a < 9.995:
		return fmt.Sprintf("%.2f", v)
	case a < 99.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// percent prints a share of one: 97 %, 0.6 %. A share that is no share (it may come from a damaged file) is shown as
// "?".
func percent(share float64) string {
	switch v := share * 100; {
	case math.IsNaN(v) || v < 0 || v > 1000:
		return "? %"
	case v > 0 && v < 9.95:
		return fmt.Sprintf("%.1f %%", v)
	default:
		return fmt.Sprintf("%.0f %%", v)
	}
}
