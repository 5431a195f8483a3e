package experiment

import (
	"fmt"
	"math"
	"time"
)

// axisText is a value of the axis for people.
func (s *Sweep) axisText(v float64) string {
	switch s.Axis {
	case Pipeline:
		return fmt.Sprintf("%.0f in flight per connection", v)
	default:
		return fmt.Sprintf("%.0f %s", v, s.Axis)
	}
}

// intervalText is an interval for people, empty where it has no end.
func intervalText(e Estimate) string {
	if e.Low == nil || e.High == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %%: %.0f to %.0f)", *e.Low, *e.High)
}

// brief is a duration of three digits.
func brief(ns int64) string {
	d := time.Duration(ns)
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// thousands is a rate of three digits, in groups: 84 300.
func thousands(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	text := fmt.Sprintf("%.0f", math.Round(v/unit)*unit)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}
