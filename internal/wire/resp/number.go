package resp

import (
	"math"
	"strconv"
)

// parseSize parses a declared size, which must fit an int64.
func parseSize(b []byte) (int64, bool) {
	if len(b) == 0 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	return parseInt(b)
}

// parseInt parses a decimal int64 with an optional sign, without allocating as strconv.ParseInt(string(b)) may.
func parseInt(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		digits, negative = b[1:], b[0] == '-'
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxInt64+1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		return -int64(n), true // of 1<<63 too: it wraps to itself
	}
	return int64(n), n <= math.MaxInt64
}

// parseDouble parses a double: decimal, or inf or nan with an optional sign (servers before 7.2 wrote -nan as their C
// library did).
func parseDouble(b []byte) (float64, bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '+', c == '-', c == '.', c == 'e', c == 'E':
		default:
			return parseNotFinite(b)
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}

func parseNotFinite(b []byte) (float64, bool) {
	switch string(b) {
	case "inf", "+inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "nan", "-nan":
		return math.NaN(), true
	}
	return 0, false
}

func isBigNumber(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
