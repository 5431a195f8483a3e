package format

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 µs", 1: "0.001 µs", 123: "0.12 µs", 1_000: "1.00 µs", 45_321: "45.3 µs", 84_049: "84.0 µs",
		999_400: "999 µs", 999_500: "1.00 ms", 9_996_000: "10.0 ms", 99_960_000: "100 ms", 84_912_000: "84.9 ms",
		999_600_000: "1.00 s", 1_523_000_000: "1.52 s", 8550 * time.Millisecond: "8.55 s", 2 * time.Hour: "7200 s",
		-1_500_000: "-1.50 ms",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
		if got := Duration(int64(d)); got != want {
			t.Errorf("%d as an integer: %q, want %q", d, got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for ns, want := range map[int64]string{
		34_400: "0.034", 999_400: "0.999", 1_234_000: "1.23", 98_760_000: "98.76", 123_400_000: "123.4",
		12_345_600_000: "12346",
	} {
		if got := Milliseconds(ns); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 50_000: "50 µs", 45_321: "45.3 µs", 999_600: "1 ms", 1_240_000: "1.24 ms",
		time.Second: "1 s", 12_345 * time.Second: "12300 s", -1_500_000: "-1.5 ms",
	} {
		if got := Brief(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Second: "10s",
		100 * time.Millisecond: "100ms",
	} {
		if got := Interval(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 512: "512 B", 1000: "1 kB", 64_000: "64 kB", 9_543_000: "9.54 MB", 999_600: "1 MB",
		2_000_000_000: "2 GB", 5_000_000_000_000_000: "5000 TB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0/s", 0.5: "0.5/s", 42: "42/s", 99.94: "99.9/s", 100.6: "101/s", 22_200: "22 200/s",
		1_234_567.8: "1 234 568/s",
	} {
		if got := Rate(v); got != want {
			t.Errorf("rate %v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		9.4e9: "9.4 Gbit/s", 1e6: "1 Mbit/s", 12_345: "12.3 kbit/s", 5: "0.005 kbit/s",
	} {
		if got := Bits(v); got != want {
			t.Errorf("bits %v: %q, want %q", v, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.0062: "0.6 %", 0.07: "7.0 %", 0.0994: "9.9 %", 0.0996: "10 %", 0.974: "97 %", 1: "100 %",
		1.2:  "120 %",
		-0.1: "? %", 1e9: "? %", math.Inf(1): "? %",
	} {
		if got := Percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	if got := Percent(math.NaN()); got != "? %" {
		t.Errorf("not a number: %q", got)
	}
	if got := WholePercent(0.064); got != "6 %" {
		t.Errorf("whole: %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0123: "0.0123", 0.5: "0.50", 9.994: "9.99", 9.996: "10.0", 99.96: "100", 12_345: "12345",
		-1.5: "-1.50",
	} {
		if got := Digits(v); got != want {
			t.Errorf("digits of %v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		0.5: "0.5", 999: "999", 1000: "1 000", 84_321: "84 300", 999_600: "1 000 000", 1_234_567: "1 230 000",
	} {
		if got := Rounded(v); got != want {
			t.Errorf("%v rounded: %q, want %q", v, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1 000", 1_432_100: "1 432 100", -100: "-100", -1_000: "-1 000",
	} {
		if got := Thousands(n); got != want {
			t.Errorf("%d in groups: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", 99_999: "99999", 100_000: "100k", 999_700: "1.00M", 1_234_567: "1.23M",
	} {
		if got := Compact(n); got != want {
			t.Errorf("%d compact: %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 3: "3 nodes", 1200: "1 200 nodes"} {
		if got := Count(n, "node"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestShort: whatever the value, a text is short enough for its column, and has no exponent.
func TestShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 99_999*int64(time.Second)).Draw(t, "n")
		for what, text := range map[string]string{
			"duration": Duration(n), "brief": Brief(n), "bytes": Bytes(n),
		} {
			if len([]rune(text)) > 9 || strings.ContainsAny(text, "e+") {
				t.Errorf("%s of %d: %q", what, n, text)
			}
		}
		if text := Compact(n); len(text) > 6 {
			t.Errorf("%d in columns: %q", n, text)
		}
	})
}
