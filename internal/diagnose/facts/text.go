package facts

import "fmt"

// Dur is a duration in nanoseconds with three digits: "84 µs", "12.3 ms", "1.52 s".
func Dur(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case ns >= 1e5:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
	}
}

// TimesText is "once" or "3 times".
func TimesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
