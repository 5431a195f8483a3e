package resp

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// small are limits that a short test can pass over.
var small = Limits{MaxBulkBytes: 16, MaxElements: 8, MaxDepth: 3, MaxLineBytes: 20}

// refused holds that Read and Skip both refuse the wire with an error that matches, however the bytes arrive, and go on
// refusing.
func refused(t *testing.T, lim Limits, wire string, want error) {
	t.Helper()
	for _, src := range []func() io.Reader{
		func() io.Reader { return strings.NewReader(wire) },
		func() io.Reader { return iotest.OneByteReader(strings.NewReader(wire)) },
	} {
		reader, skipper := NewReader(src(), lim), NewReader(src(), lim)
		for range 2 {
			if v, err := reader.Read(); !errors.Is(err, want) {
				t.Errorf("Read(%.60q) = %+v, %v; want %v", wire, v, err, want)
			}
			if s, err := skipper.Skip(); !errors.Is(err, want) {
				t.Errorf("Skip(%.60q) = %+v, %v; want %v", wire, s, err, want)
			}
		}
	}
}

func TestErrProtocol(t *testing.T) {
	for _, wire := range []string{
		"?\r\n", "\r\n", "\x00", "hello\r\n", // unknown type
		":\r\n", ":1x\r\n", ":--1\r\n", ":9223372036854775808\r\n", ":-9223372036854775809\r\n",
		":99999999999999999999\r\n",
		"$\r\n", "$-2\r\n", "$+1\r\nx\r\n", "$x\r\n", "$99999999999999999999\r\n", "*-2\r\n", "*x\r\n", "%-1\r\n",
		"~-1\r\n", "|-1\r\n",
		"$?\r\n;1\r\nx\r\n;0\r\n", "*?\r\n:1\r\n.\r\n", "%?\r\n.\r\n", // streamed
		"$1\r\nxy\r\n", "$1\r\nx\n\n", "=3\r\ntxt\r\n", "=4\r\ntext\r\n", // not of the declared size or format
		",\r\n", ",1,5\r\n", ",0x1p4\r\n", ",infinity\r\n", ",1e999\r\n", ",1_0\r\n",
		"#\r\n", "#true\r\n", "#1\r\n", "(\r\n", "(-\r\n", "(12a\r\n", "_x\r\n",
		"*1\r\n?\r\n", "*1\r\nHTTP/1.1\r\n", // the hint is for the first byte of a reply only
		"*1\r\n>1\r\n+x\r\n", // a push inside another value
	} {
		refused(t, Limits{}, wire, ErrProtocol)
		if _, err := NewReader(strings.NewReader(wire), Limits{}).Read(); errors.Is(err, ErrNotRedis) {
			t.Errorf("%q is taken for another protocol: %v", wire, err)
		}
	}
}

func TestErrTooLarge(t *testing.T) {
	for _, wire := range []string{
		"$17\r\n", "!17\r\n", "=17\r\n", // refused by the size alone
		"+" + strings.Repeat("x", 21) + "\r\n",
		strings.Repeat("+", 24), // no line end in sight
	} {
		refused(t, small, wire, ErrTooLarge)
	}
	for wire, most := range map[string]int64{
		"*5\r\n" + strings.Repeat("$12\r\n0123456789ab\r\n", 5): 5*valueBytes + 64, // its bytes
		"*8\r\n" + strings.Repeat("+123456789012\r\n", 8):       8*valueBytes + 64,
		"*11\r\n": 11*valueBytes - 1, "%6\r\n": 12*valueBytes - 1, "|5\r\n": 11*valueBytes - 1, // its values
		"*1\r\n*10\r\n": 11*valueBytes - 1,
	} {
		refused(t, Limits{MaxReplyBytes: most}, wire, ErrTooLarge)
	}
	refused(t, Limits{}, "$9223372036854775807\r\n", ErrTooLarge)
	refused(t, Limits{MaxBulkBytes: 1 << 62, MaxReplyBytes: 1 << 62}, "$9223372036854775807\r\n", ErrTooLarge)
	refused(t, Limits{MaxBulkBytes: 1<<63 - 1}, "$9223372036854775807\r\n", ErrTooLarge)
}

func TestErrTooDeep(t *testing.T) {
	refused(t, small, "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", ErrTooDeep)
	refused(t, small, "*1\r\n%1\r\n+k\r\n~1\r\n*0\r\n", ErrTooDeep)
	refused(t, Limits{MaxDepth: 3}, strings.Repeat("|1\r\n", 4), ErrTooDeep)
	refused(t, Limits{}, strings.Repeat("*1\r\n", 100_000), ErrTooDeep)
	refused(t, Limits{MaxDepth: 1 << 30, MaxElements: 1 << 40}, strings.Repeat("*1\r\n", 10_000), ErrTooDeep)
}

func TestErrTooManyElements(t *testing.T) {
	for _, wire := range []string{
		"*9\r\n", "%5\r\n", "|4\r\n", "~9\r\n", ">9\r\n", // refused by the size alone
		"*4\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n*1\r\n",
		strings.Repeat("|0\r\n", 9), // attributes without end
	} {
		refused(t, small, wire, ErrTooManyElements)
	}
	for _, wire := range []string{
		"*1000000000\r\n", "%9223372036854775807\r\n", "*9223372036854775807\r\n",
		"|1000000000\r\n",
	} {
		refused(t, Limits{}, wire, ErrTooManyElements)
	}
}

func TestErrNotRedis(t *testing.T) {
	for wire, hint := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n\r\n": "the peer speaks HTTP, not the Redis protocol",
		"<html>\n<head>":                   "the peer speaks HTTP, not the Redis protocol",
		"<!DOCTYPE html>":                  "the peer speaks HTTP, not the Redis protocol",
		"\x15\x03\x01\x00\x02\x02\x46":     "it expects TLS; add --tls",
		"\x16\x03\x03\x00\x7a":             "it expects TLS; add --tls",
		"SSH-2.0-OpenSSH_9.6\r\n":          "the peer speaks SSH",
		"ERROR\r\n":                        "memcached",
	} {
		refused(t, Limits{}, wire, ErrNotRedis)
		refused(t, Limits{}, wire, ErrProtocol)
		_, err := NewReader(iotest.OneByteReader(strings.NewReader(wire)), Limits{}).Read()
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: got %q, want it to say %q", wire, err, hint)
		}
	}
}

func TestErrUnexpectedEOF(t *testing.T) {
	for _, test := range replies {
		for cut := 1; cut < len(test.wire); cut++ {
			refused(t, Limits{}, test.wire[:cut], io.ErrUnexpectedEOF)
		}
	}
}

// A deadline that passes while nothing of a reply has been taken leaves the Reader usable; later it does not.
func TestErrTimeout(t *testing.T) {
	r := NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(":12\r\n"))), Limits{})
	if _, err := r.Read(); err != iotest.ErrTimeout {
		t.Fatalf("got %v, want a timeout", err)
	}
	if v, err := r.Read(); err != nil || v.Int != 12 {
		t.Errorf("after a timeout between replies: %v, %v", v, err)
	}
	r = NewReader(io.MultiReader(strings.NewReader("*2\r\n"), iotest.ErrReader(iotest.ErrTimeout)), Limits{})
	for range 2 {
		if _, err := r.Skip(); err != iotest.ErrTimeout {
			t.Errorf("got %v, want the same timeout for ever", err)
		}
	}
	r.Reset(strings.NewReader("+OK\r\n"))
	if _, err := r.Skip(); err != nil {
		t.Errorf("after Reset: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestErrNoProgress(t *testing.T) {
	if _, err := NewReader(idle{}, Limits{}).Skip(); err != io.ErrNoProgress {
		t.Errorf("got %v", err)
	}
}

// A size that is only declared costs next to nothing, whatever the limits allow.
func TestDeclaredSizesAllocateNothing(t *testing.T) {
	lim := Limits{MaxElements: 1 << 40, MaxBulkBytes: 1 << 40, MaxReplyBytes: 1 << 41}
	for _, wire := range []string{
		"*1000000000\r\n", "%1000000000\r\n", "$1000000000\r\n",
		"*1000000000\r\n*1000000000\r\n$1000000000\r\nxx",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := NewReader(strings.NewReader(wire), lim).Read()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; err != io.ErrUnexpectedEOF || grown > 256<<10 {
			t.Errorf("%q: %v, %d bytes allocated", wire, err, grown)
		}
	}
}
