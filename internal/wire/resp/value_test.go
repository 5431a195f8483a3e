package resp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestServerError(t *testing.T) {
	for text, want := range map[string]ServerError{
		"ERR unknown command 'X'":     {"ERR", "unknown command 'X'"},
		"NOAUTH":                      {"NOAUTH", ""},
		"MOVED 1 :7000":               {"MOVED", "1 :7000"},
		"CROSSSLOT-2_B x":             {"CROSSSLOT-2_B", "x"},
		"my script failed":            {"", "my script failed"},
		"Error: no":                   {"", "Error: no"},
		" ERR x":                      {"", " ERR x"},
		"":                            {"", ""},
		"2FAST x":                     {"", "2FAST x"},
		"OOM command not allowed ...": {"OOM", "command not allowed ..."},
	} {
		for _, kind := range []Kind{Error, BlobError} {
			err := Value{Kind: kind, Str: []byte(text)}.Err()
			var got *ServerError
			if !errors.As(err, &got) || *got != want || err.Error() != text {
				t.Errorf("%q: got %+v, %q", text, got, err)
			}
		}
	}
	if err := bulk("ERR x").Err(); err != nil {
		t.Errorf("a bulk string is an error: %v", err)
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want string
	}{
		{bulk("a"), "a"},
		{simple("OK"), "OK"},
		{integer(-3), "-3"},
		{double(0.5), "0.5"},
		{
			double(math.Inf(-1)),
			"-inf",
		},
		{double(math.NaN()), "nan"},
		{Value{Kind: Bool, Int: 1}, "true"},
		{
			Value{Kind: Verbatim, Str: []byte("txt:a")},
			"a",
		},
		{Value{Kind: Verbatim, Str: []byte("tx")}, "tx"},
		{Value{Kind: Null}, ""},
		{array(bulk("a")), ""},
		{Value{}, ""},
	} {
		if got := test.v.Text(); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.v, got, test.want)
		}
	}
}

func TestInteger(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want int64
		ok   bool
	}{
		{integer(5), 5, true},
		{bulk("17"), 17, true},
		{simple("-1"), -1, true},
		{bulk("1.5"), 0, false},
		{bulk(""), 0, false},
		{Value{Kind: Null}, 0, false},
		{array(), 0, false},
		{Value{Kind: BigNumber, Str: []byte("99999999999999999999")}, 0, false},
	} {
		if got, ok := test.v.Integer(); got != test.want || ok != test.ok {
			t.Errorf("%+v: got %d, %v", test.v, got, ok)
		}
	}
}

func TestPairs(t *testing.T) {
	for _, kind := range []Kind{Map, Array} {
		v := Value{Kind: kind, Elems: []Value{bulk("a"), integer(1), bulk("b"), integer(2), bulk("odd")}}
		var got []string
		for k, value := range v.Pairs() {
			got = append(got, k.Text()+"="+value.Text())
		}
		if !slices.Equal(got, []string{"a=1", "b=2"}) {
			t.Errorf("%v: got %v", kind, got)
		}
		for range v.Pairs() {
			break
		}
		if b, ok := v.Get("b"); !ok || b.Int != 2 {
			t.Errorf("Get(b) = %v, %v", b, ok)
		}
		if _, ok := v.Get("odd"); ok {
			t.Error("Get found a key without a value")
		}
	}
	for range bulk("a").Pairs() {
		t.Error("a string has pairs")
	}
}

func TestNullAndKindNames(t *testing.T) {
	if !(Value{}).IsNull() || !read("$-1\r\n").IsNull() || bulk("").IsNull() {
		t.Error("IsNull is wrong")
	}
	if got := fmt.Sprint(Kind(0), Verbatim, Kind(200)); got != "no value verbatim string no value" {
		t.Error(got)
	}
}

func TestAppendCommand(t *testing.T) {
	const want = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\na\r\n\r\n"
	if got := AppendCommand(nil, "SET", "", "a\r\n"); string(got) != want {
		t.Errorf("got %q", got)
	}
	if got := AppendCommand([]byte("+"), "SET", "", "a\r\n"); string(got) != "+"+want {
		t.Errorf("appended: got %q", got)
	}
}

func TestAppendValueKeepsToTheProtocol(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want string
	}{
		{Value{Kind: Error, Str: []byte("ERR a\r\n+OK")}, "-ERR a  +OK\r\n"},
		{Value{Kind: Map, Elems: []Value{bulk("odd")}}, "%0\r\n"},
		{Value{Kind: Integer, Attr: []Value{bulk("odd")}}, ":0\r\n"},
		{Value{}, "_\r\n"},
		{Value{Kind: Attribute}, "_\r\n"},
		{Value{Kind: Bool, Int: 4}, "#t\r\n"},
	} {
		if got := AppendValue(nil, test.v); string(got) != test.want {
			t.Errorf("%+v: got %q, want %q", test.v, got, test.want)
		}
	}
}
