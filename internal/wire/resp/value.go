package resp

import (
	"iter"
	"strconv"
)

// Value is one value of a reply, with its elements. All methods are safe on any kind, and on the zero Value.
type Value struct {
	Kind  Kind
	Str   []byte  // of strings, errors and big numbers; of a verbatim string with its format, as in "txt:…"
	Int   int64   // of an integer; of a boolean, 0 or 1
	Float float64 // of a double
	Elems []Value // of an array, set or push; of a map, keys and values in turn
	Attr  []Value // of the attribute before the value, keys and values in turn; nearly always nil
}

// IsNull reports whether the value is a null or the zero Value.
func (v Value) IsNull() bool { return v.Kind == Null || v.Kind == 0 }

// Err returns a [*ServerError] if the value is an error reply, else nil.
func (v Value) Err() error {
	if !v.Kind.IsError() {
		return nil
	}
	return newServerError(v.Str)
}

// Text returns the value as text: a string without the format of a verbatim one, a number in decimal, a boolean as true
// or false; empty for a null or an aggregate.
func (v Value) Text() string {
	switch v.Kind {
	case Integer:
		return strconv.FormatInt(v.Int, 10)
	case Double:
		return string(appendDouble(nil, v.Float))
	case Bool:
		return strconv.FormatBool(v.Int != 0)
	case Verbatim:
		if len(v.Str) >= 4 {
			return string(v.Str[4:])
		}
	}
	return string(v.Str)
}

// Integer returns the value as an integer: of an integer, or of a string or big number that is a decimal int64, since
// RESP2 has many numbers as strings.
func (v Value) Integer() (int64, bool) {
	switch v.Kind {
	case Integer:
		return v.Int, true
	case SimpleString, BulkString, BigNumber:
		return parseInt(v.Str)
	}
	return 0, false
}

// Pairs iterates over keys and values: of a RESP3 map, and of the flat array that RESP2 has in its place. A last key
// without a value is left out.
func (v Value) Pairs() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		for i := 0; i+1 < len(v.Elems); i += 2 {
			if !yield(v.Elems[i], v.Elems[i+1]) {
				return
			}
		}
	}
}

// Get returns the first value of a key in a map or flat array.
func (v Value) Get(key string) (Value, bool) {
	for k, value := range v.Pairs() {
		if string(k.Str) == key {
			return value, true
		}
	}
	return Value{}, false
}
