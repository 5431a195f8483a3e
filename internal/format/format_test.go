package format

import (
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Span(0): "0 µs", Span(45_321 * time.Nanosecond): "45.3 µs", Span(999_600 * time.Nanosecond): "1.00 ms",
		Span(8550 * time.Millisecond): "8.55 s", Span(2 * time.Hour): "7200 s",
		Interval(5 * time.Minute): "5m", Interval(time.Hour): "1h", Interval(90 * time.Second): "1m30s",
		Interval(10 * time.Second): "10s",
		Digits(0.0123):             "0.0123", Digits(9.994): "9.99", Digits(9.996): "10.0", Digits(99.96): "100",
		Count(1, "node"): "1 node", Count(0, "node"): "0 nodes", Count(3, "node"): "3 nodes",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
