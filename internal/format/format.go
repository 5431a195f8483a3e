// Package format writes numbers for people: durations, sizes, rates, shares and counts. Everything that slowpath prints
// goes through it, so that the same value looks the same everywhere.
//
// There is a space between a number and its unit, and one between groups of three digits. Units are decimal: 1 kB is
// 1000 bytes.
package format

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a measured duration with three significant digits, so that columns are equally precise: "45.3 µs",
// "1.00 ms". It takes a time.Duration or nanoseconds.
func Duration[D ~int64](d D) string {
	v, unit := scaled(float64(d)/1e3, "µs", "ms", "s")
	if v != 0 && math.Abs(v) < 0.0995 {
		return decimals(v, 3) + " " + unit // whole nanoseconds
	}
	return Digits(v) + " " + unit
}

// Milliseconds is a duration for columns whose head names the unit, as redis-cli has them: "0.034", "1.23", "123.4".
func Milliseconds(ns int64) string {
	switch v := float64(ns) / 1e6; {
	case v < 1:
		return decimals(v, 3)
	case v < 100:
		return decimals(v, 2)
	case v < 1000:
		return decimals(v, 1)
	default:
		return decimals(v, 0)
	}
}

// Brief is a duration with at most three significant digits and no zeros behind the point, for sentences and settings:
// "50 µs", "1.24 ms".
func Brief[D ~int64](d D) string {
	v, unit := scaled(float64(d), "ns", "µs", "ms", "s")
	return significant(v) + " " + unit
}

// Interval is a setting as a flag takes it, without parts that are zero: "5m", not "5m0s".
func Interval(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Bytes is a size: "512 B", "64 kB", "9.54 MB".
func Bytes(n int64) string {
	v, unit := scaled(float64(n), "B", "kB", "MB", "GB", "TB")
	return significant(v) + " " + unit
}

// Bits is the speed of a link: "9.4 Gbit/s".
func Bits(perSecond float64) string {
	v, unit := scaled(perSecond/1e3, "kbit/s", "Mbit/s", "Gbit/s")
	return significant(v) + " " + unit
}

// Rate is something per second: "22 200/s", and below 100 with three significant digits: "0.5/s".
func Rate(perSecond float64) string {
	if perSecond < 100 {
		return significant(perSecond) + "/s"
	}
	return Thousands(perSecond) + "/s"
}

// Percent is a share of one, with a decimal below 10 %: "97 %", "0.6 %". What is no share is "? %": it may come from a
// damaged file.
func Percent(share float64) string {
	switch v := share * 100; {
	case math.IsNaN(v) || v < 0 || v > 1000:
		return "? %"
	case v > 0 && v < 9.95:
		return decimals(v, 1) + " %"
	default:
		return decimals(v, 0) + " %"
	}
}

// WholePercent is a share of one where a tenth of a percent says nothing, such as how busy a thread is: "98 %".
func WholePercent(share float64) string { return decimals(100*share, 0) + " %" }

// Digits is a number with three significant digits, at most four decimals and no exponent: "0.0123", "9.99", "100".
func Digits(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a < 0.0995:
		return decimals(v, 4)
	case a < 9.995:
		return decimals(v, 2)
	case a < 99.95:
		return decimals(v, 1)
	}
	return decimals(v, 0)
}

// Thousands is a number, rounded to a whole one, in groups of three digits: "1 432 100".
func Thousands[N ~int | ~int64 | ~float64](n N) string {
	s := decimals(float64(n), 0)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Rounded is a number with at most three significant digits, in groups: "84 300", "0.5".
func Rounded(v float64) string {
	if v < 1000 {
		return significant(v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return Thousands(math.Round(v/unit) * unit)
}

// Compact is a number in at most six columns: "99999", "1.23M".
func Compact(n int64) string {
	if n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	v, unit := scaled(float64(n)/1e3, "k", "M", "G", "T")
	return Digits(v) + unit
}

// Count is a number of things: "1 node", "3 nodes", "12 000 calls".
func Count[N ~int | ~int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Thousands(n) + " " + thing + "s"
}

// scaled divides v, which is in the first of the units, by 1000 until it has at most three digits before the point.
func scaled(v float64, units ...string) (float64, string) {
	for len(units) > 1 && math.Abs(v) >= 999.5 {
		v, units = v/1e3, units[1:]
	}
	return v, units[0]
}

func decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

// significant is a number with at most three significant digits, without zeros at the end and without exponent.
func significant(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		return "?" // never: ParseFloat reads what FormatFloat writes
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
