package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// values draws a value that a server could send, at most depth aggregates deep.
func values(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []Kind{SimpleString, Error, Integer, BulkString, Null, Double, Bool, BigNumber, BlobError, Verbatim}
		if depth > 0 {
			kinds = append(kinds, Array, Map, Set)
		}
		v := Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.Kind {
		case SimpleString, Error:
			v.Str = []byte(rapid.StringMatching(`[^\r\n]*`).Draw(t, "line"))
		case Integer:
			v.Int = rapid.Int64().Draw(t, "int")
		case Bool:
			v.Int = rapid.Int64Range(0, 1).Draw(t, "bool")
		case Double:
			v.Float = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
				math.NaN(), math.Inf(1),
				math.Inf(-1),
			})).Draw(t, "float")
		case BulkString, BlobError:
			v.Str = rapid.SliceOf(rapid.Byte()).Draw(t, "blob")
		case Verbatim:
			v.Str = append([]byte("mkd:"), rapid.SliceOf(rapid.Byte()).Draw(t, "verbatim")...)
		case BigNumber:
			v.Str = []byte(rapid.StringMatching(`-?[0-9]{1,30}`).Draw(t, "big"))
		case Array, Set:
			v.Elems = rapid.SliceOfN(values(depth-1), 0, 20).Draw(t, "elems")
		case Map:
			v.Elems = pairs(depth-1).Draw(t, "pairs")
		}
		if depth > 0 && rapid.IntRange(0, 9).Draw(t, "attributed") == 0 {
			v.Attr = pairs(depth-1).Draw(t, "attr")
		}
		return v
	})
}

func pairs(depth int) *rapid.Generator[[]Value] {
	return rapid.Map(rapid.SliceOfN(values(depth), 0, 10), func(vs []Value) []Value { return vs[:len(vs)/2*2] })
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := values(3).Draw(t, "value")
		wire := AppendValue(nil, want)
		got, err := NewReader(iotest.HalfReader(bytes.NewReader(wire)), Limits{}).Read()
		if err != nil || !same(got, want) {
			t.Fatalf("%q came back as %+v, %v", wire, got, err)
		}
		s, err := NewReader(bytes.NewReader(wire), Limits{}).Skip()
		if err != nil || s.Kind != want.Kind || s.Bytes != int64(len(wire)) {
			t.Fatalf("%q was skipped as %+v, %v", wire, s, err)
		}
	})
}

// footprint is the memory of a value in units: one for each byte of string capacity, and about as many as its size for
// a value.
func footprint(v Value) int {
	n := cap(v.Str)
	for _, inside := range [][]Value{v.Elems, v.Attr} {
		n += cap(inside) * 120
		for _, e := range inside {
			n += footprint(e)
		}
	}
	return n
}

// FuzzReader holds, for any bytes: Read and Skip consume the same and agree on the error, however the bytes arrive;
// what is read can be written and read back; and memory is bounded by what arrived.
func FuzzReader(f *testing.F) {
	for _, test := range replies {
		f.Add([]byte(test.wire))
		f.Add([]byte(test.wire + test.wire[:len(test.wire)/2]))
	}
	for _, wire := range []string{
		"*1000000000\r\n", "HTTP/1.1", "\x15\x03", "*3\r\n|1\r\n+a\r\n*0\r\n", "$?\r\n",
		"%1\r\n>0\r\n",
	} {
		f.Add([]byte(wire))
	}
	lim := Limits{MaxBulkBytes: 1 << 10, MaxReplyBytes: 4 << 10, MaxElements: 64, MaxDepth: 6, MaxLineBytes: 100}
	f.Fuzz(func(t *testing.T, wire []byte) {
		whole := NewReader(bytes.NewReader(wire), lim)
		bytewise := NewReader(iotest.OneByteReader(bytes.NewReader(wire)), lim)
		skipper := NewReader(bytes.NewReader(wire), lim)
		for range len(wire) + 1 {
			v, err := whole.Read()
			slow, slowErr := bytewise.Read()
			s, skipErr := skipper.Skip()
			if kindOfError(err) != kindOfError(slowErr) || kindOfError(err) != kindOfError(skipErr) {
				t.Fatalf("read whole: %v; by the byte: %v; skipped: %v", err, slowErr, skipErr)
			}
			if err != nil {
				return
			}
			if !same(v, slow) || v.Kind != s.Kind || s.Bytes != whole.replyBytes || s.Bytes != bytewise.replyBytes {
				t.Fatalf("read %+v (%d bytes), by the byte %+v, skipped %+v", v, whole.replyBytes, slow, s)
			}
			if n := footprint(v); n > 500*int(s.Bytes)+4096 {
				t.Fatalf("%d units of memory for %d bytes", n, s.Bytes)
			}
			back, err := NewReader(bytes.NewReader(AppendValue(nil, v)), Limits{}).Read()
			if err != nil || v.Kind != back.Kind {
				t.Fatalf("%+v was read back as %+v, %v", v, back, err)
			}
			_, _, _ = v.Text(), v.Err(), v.IsNull()
		}
		t.Fatalf("more replies than bytes in %q", wire)
	})
}

func kindOfError(err error) error {
	for _, kind := range []error{
		ErrNotRedis, ErrTooLarge, ErrTooDeep, ErrTooManyElements, ErrProtocol,
		io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}
