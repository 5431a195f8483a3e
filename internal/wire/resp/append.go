package resp

import (
	"math"
	"strconv"
)

// AppendCommand appends a command: an array of bulk strings. It allocates only to grow dst.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = appendSize(dst, Array, len(args))
	for _, arg := range args {
		dst = appendSize(dst, BulkString, len(arg))
		dst = append(dst, arg...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// AppendValue appends a value as a RESP3 server sends it. Values of RESP2 kinds, except null, are the same in RESP2.
// Line ends in a simple string or error become spaces, as in Redis. A value of no kind, or of kind [Attribute], is
// appended as a null. Fake servers of tests use it.
func AppendValue(dst []byte, v Value) []byte {
	if len(v.Attr) >= 2 {
		dst = appendPairs(dst, Attribute, v.Attr)
	}
	switch v.Kind {
	case SimpleString, Error, BigNumber:
		return appendLine(dst, v.Kind, v.Str)
	case Integer:
		dst = strconv.AppendInt(append(dst, ':'), v.Int, 10)
	case Double:
		dst = appendDouble(append(dst, ','), v.Float)
	case Bool:
		if v.Int != 0 {
			dst = append(dst, '#', 't')
		} else {
			dst = append(dst, '#', 'f')
		}
	case BulkString, BlobError, Verbatim:
		return appendBlob(dst, v.Kind, v.Str)
	case Array, Set, Push:
		dst = appendSize(dst, v.Kind, len(v.Elems))
		for _, elem := range v.Elems {
			dst = AppendValue(dst, elem)
		}
		return dst
	case Map:
		return appendPairs(dst, Map, v.Elems)
	default:
		dst = append(dst, '_')
	}
	return append(dst, '\r', '\n')
}

// appendPairs appends a map or attribute, without a last key that has no value.
func appendPairs(dst []byte, kind Kind, elems []Value) []byte {
	pairs := len(elems) / 2
	dst = appendSize(dst, kind, pairs)
	for _, elem := range elems[:2*pairs] {
		dst = AppendValue(dst, elem)
	}
	return dst
}

func appendSize(dst []byte, kind Kind, size int) []byte {
	dst = strconv.AppendInt(append(dst, kinds[kind].first), int64(size), 10)
	return append(dst, '\r', '\n')
}

func appendBlob(dst []byte, kind Kind, b []byte) []byte {
	dst = append(appendSize(dst, kind, len(b)), b...)
	return append(dst, '\r', '\n')
}

func appendLine(dst []byte, kind Kind, line []byte) []byte {
	dst = append(dst, kinds[kind].first)
	for _, c := range line {
		if c == '\r' || c == '\n' {
			c = ' '
		}
		dst = append(dst, c)
	}
	return append(dst, '\r', '\n')
}

// appendDouble writes a double with the fewest digits that read back the same.
func appendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}
