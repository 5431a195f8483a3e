// Package format writes numbers for people.
package format

import (
	"fmt"
	"strings"
	"time"
)

// Span is a duration with three significant digits: "45.3 µs".
func Span(d time.Duration) string {
	v, unit := float64(d)/1e3, "µs"
	for _, next := range []string{"ms", "s"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1e3, next
	}
	return Digits(v) + " " + unit
}

// Interval is a duration without parts that are zero: 5m, and not 5m0s.
func Interval(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Digits prints three significant ones.
func Digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.0995:
		return fmt.Sprintf("%.4f", v)
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Count is a number of things: "1 node", "3 nodes".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
