package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"
)

func bulk(s string) Value     { return Value{Kind: BulkString, Str: []byte(s)} }
func integer(n int64) Value   { return Value{Kind: Integer, Int: n} }
func array(vs ...Value) Value { return Value{Kind: Array, Elems: vs} }
func double(f float64) Value  { return Value{Kind: Double, Float: f} }
func simple(s string) Value   { return Value{Kind: SimpleString, Str: []byte(s)} }
func read(wire string) Value  { v, _ := NewReader(strings.NewReader(wire), Limits{}).Read(); return v }

// same compares values; an empty string or aggregate equals a nil one, and NaN equals NaN.
func same(a, b Value) bool {
	if a.Kind != b.Kind || a.Int != b.Int || !bytes.Equal(a.Str, b.Str) || len(a.Elems) != len(b.Elems) ||
		len(a.Attr) != len(b.Attr) {
		return false
	}
	if a.Float != b.Float && !(math.IsNaN(a.Float) && math.IsNaN(b.Float)) {
		return false
	}
	for i := range a.Elems {
		if !same(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	for i := range a.Attr {
		if !same(a.Attr[i], b.Attr[i]) {
			return false
		}
	}
	return true
}

// replies are well-formed: each is one reply, and the kind and number of elements that Skip must tell of it.
var replies = []struct {
	name, wire string
	want       Value
	elements   int64
}{
	{"simple string", "+OK\r\n", simple("OK"), 0},
	{"empty simple string", "+\r\n", simple(""), 0},
	{"lone line ends inside a line", "+a\rb\nc\r\n", simple("a\rb\nc"), 0},
	{"carriage return before the line end", "+a\r\r\n", simple("a\r"), 0},
	{"error", "-ERR no such key\r\n", Value{Kind: Error, Str: []byte("ERR no such key")}, 0},
	{"integer", ":-42\r\n", integer(-42), 0},
	{"integer with plus", ":+7\r\n", integer(7), 0},
	{"smallest integer", ":-9223372036854775808\r\n", integer(math.MinInt64), 0},
	{"largest integer", ":9223372036854775807\r\n", integer(math.MaxInt64), 0},
	{"bulk string", "$5\r\na\r\nbc\r\n", bulk("a\r\nbc"), 0},
	{"empty bulk string", "$0\r\n\r\n", bulk(""), 0},
	{"null bulk string", "$-1\r\n", Value{Kind: Null}, 0},
	{"null array", "*-1\r\n", Value{Kind: Null}, 0},
	{"null", "_\r\n", Value{Kind: Null}, 0},
	{"empty array", "*0\r\n", array(), 0},
	{"array", "*3\r\n:1\r\n$1\r\nx\r\n*1\r\n_\r\n", array(integer(1), bulk("x"), array(Value{Kind: Null})), 4},
	{"double", ",-1.5e3\r\n", double(-1500), 0},
	{"double without fraction", ",10\r\n", double(10), 0},
	{"infinite double", ",inf\r\n", double(math.Inf(1)), 0},
	{"negative infinite double", ",-inf\r\n", double(math.Inf(-1)), 0},
	{"double that is no number", ",nan\r\n", double(math.NaN()), 0},
	{"double that is no number, as libc prints it", ",-nan\r\n", double(math.NaN()), 0},
	{"true", "#t\r\n", Value{Kind: Bool, Int: 1}, 0},
	{"false", "#f\r\n", Value{Kind: Bool}, 0},
	{
		"big number", "(-3492890328409238509324850943850943825024385\r\n",
		Value{Kind: BigNumber, Str: []byte("-3492890328409238509324850943850943825024385")},
		0,
	},
	{"blob error", "!10\r\nSYNTAX a\r\n\r\n", Value{Kind: BlobError, Str: []byte("SYNTAX a\r\n")}, 0},
	{"verbatim string", "=8\r\ntxt:text\r\n", Value{Kind: Verbatim, Str: []byte("txt:text")}, 0},
	{
		"map", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
		Value{Kind: Map, Elems: []Value{simple("a"), integer(1), simple("b"), array(integer(2))}},
		5,
	},
	{"set", "~2\r\n:1\r\n:2\r\n", Value{Kind: Set, Elems: []Value{integer(1), integer(2)}}, 2},
	{"push", ">2\r\n+invalidate\r\n_\r\n", Value{Kind: Push, Elems: []Value{simple("invalidate"), {Kind: Null}}}, 2},
	{
		"attribute", "|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n",
		Value{Kind: BulkString, Str: []byte("x"), Attr: []Value{simple("ttl"), integer(3600)}},
		3,
	},
	{
		"attribute inside an array", "*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n",
		array(integer(1), Value{Kind: Integer, Int: 3, Attr: []Value{simple("ttl"), integer(3600)}}), 5,
	},
	{
		"attributes in a row are one", "|1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n:3\r\n",
		Value{Kind: Integer, Int: 3, Attr: []Value{simple("a"), integer(1), simple("b"), integer(2)}},
		6,
	},
	{"empty attribute", "|0\r\n:3\r\n", integer(3), 1},
}

func TestRead(t *testing.T) {
	for _, test := range replies {
		t.Run(test.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"at once":     strings.NewReader(test.wire + test.wire),
				"by the byte": iotest.OneByteReader(strings.NewReader(test.wire + test.wire)),
				"data + EOF":  iotest.DataErrReader(strings.NewReader(test.wire + test.wire)),
			} {
				r := NewReader(src, Limits{})
				for range 2 {
					if got, err := r.Read(); err != nil || !same(got, test.want) {
						t.Errorf("%s: got %+v, %v; want %+v", name, got, err, test.want)
					}
				}
				if _, err := r.Read(); err != io.EOF {
					t.Errorf("%s: after the last reply: %v, want EOF", name, err)
				}
			}
		})
	}
}

func TestSkip(t *testing.T) {
	for _, test := range replies {
		t.Run(test.name, func(t *testing.T) {
			r := NewReader(iotest.HalfReader(strings.NewReader(test.wire+test.wire)), Limits{})
			for range 2 {
				got, err := r.Skip()
				if err != nil || got.Kind != test.want.Kind || got.Bytes != int64(len(test.wire)) ||
					got.Elements != test.elements {
					t.Errorf("got %+v, %v; want %v, %d bytes, %d elements", got, err, test.want.Kind, len(test.wire),
						test.elements)
				}
				if want := test.want.Err(); !reflect.DeepEqual(got.Err(), want) {
					t.Errorf("got error %v, want %v", got.Err(), want)
				}
			}
			if _, err := r.Skip(); err != io.EOF {
				t.Errorf("after the last reply: %v, want EOF", err)
			}
		})
	}
}

func TestReadLargerThanBuffer(t *testing.T) {
	long, blob := strings.Repeat("e", 40_000), strings.Repeat("b", 300_000)
	for name, wire := range map[string]string{
		"line":       "+" + long + "\r\n",
		"blob":       string(AppendValue(nil, bulk(blob))),
		"blob error": string(AppendValue(nil, Value{Kind: BlobError, Str: []byte("OOPS " + blob)})),
	} {
		got, err := NewReader(strings.NewReader(wire), Limits{}).Read()
		if err != nil || string(AppendValue(nil, got)) != wire {
			t.Errorf("%s: got %d bytes, %v", name, len(got.Str), err)
		}
		s, err := NewReader(iotest.HalfReader(strings.NewReader(wire)), Limits{}).Skip()
		if err != nil || s.Bytes != int64(len(wire)) || len(s.ErrorText) > errorTextBytes {
			t.Errorf("%s: skipped %+v, %v", name, s, err)
		}
		if name == "blob error" && string(s.ErrorCode()) != "OOPS" {
			t.Errorf("code %q, want OOPS", s.ErrorCode())
		}
	}
}

func TestSkipErrorCode(t *testing.T) {
	r := NewReader(strings.NewReader("-MOVED 3999 127.0.0.1:6381\r\n*1\r\n-ERR inner\r\n"), Limits{})
	s, err := r.Skip()
	if err != nil || string(s.ErrorCode()) != "MOVED" || string(s.ErrorText) != "MOVED 3999 127.0.0.1:6381" {
		t.Errorf("got %q %q, %v", s.ErrorCode(), s.ErrorText, err)
	}
	if s, err = r.Skip(); err != nil || s.ErrorCode() != nil || s.Err() != nil {
		t.Errorf("an error inside an array made the array an error: %+v, %v", s, err)
	}
}

// ErrorCode returns the code of an error reply (see [ServerError]), or nil. Like ErrorText it is valid until the next
// call of the Reader.
func (s Summary) ErrorCode() []byte {
	code, _ := splitCode(s.ErrorText)
	return code
}

// TestBudgetOfReplies: what replies take in memory is bounded, whatever they are made of.
func TestBudgetOfReplies(t *testing.T) {
	const budget = 1 << 20
	for name, wire := range map[string]string{
		"strings":        "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n",
		"lines":          "+" + strings.Repeat("x", 1000) + "\r\n",
		"nulls":          "*1000\r\n" + strings.Repeat("_\r\n", 1000),
		"arrays":         "*1000\r\n" + strings.Repeat("*1\r\n_\r\n", 1000),
		"pushes":         ">2\r\n+a\r\n+b\r\n",
		"attributes":     "|1\r\n+a\r\n+b\r\n",
		"no attributes":  "|0\r\n",
		"map":            "%500\r\n" + strings.Repeat("+a\r\n:1\r\n", 500),
		"great string":   "$2000000\r\n" + strings.Repeat("x", 2_000_000) + "\r\n",
		"great array":    "*20000\r\n" + strings.Repeat("_\r\n", 20_000),
		"nested too far": strings.Repeat("*1\r\n", 20) + "*20000\r\n" + strings.Repeat("_\r\n", 20_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := NewReader(&endless{wire: []byte(wire)}, Limits{}).Replies(2000, budget)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %d replies, %v", name, len(got), err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4*budget {
			t.Errorf("%s: %d bytes were allocated for a budget of %d", name, used, budget)
		}
	}
	if valueBytes != unsafe.Sizeof(Value{}) {
		t.Errorf("a Value has %d bytes", unsafe.Sizeof(Value{}))
	}
}

// TestBudgetIsOfOneExchange: what one exchange took does not count for the next.
func TestBudgetIsOfOneExchange(t *testing.T) {
	r := NewReader(&endless{wire: []byte("$1000\r\n" + strings.Repeat("x", 1000) + "\r\n")}, Limits{})
	for range 10 {
		if got, err := r.Replies(2, 3000); err != nil || len(got) != 2 {
			t.Fatalf("%d replies, %v", len(got), err)
		}
	}
	if _, err := r.Read(); err != nil {
		t.Error(err)
	}
}
