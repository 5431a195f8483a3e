package resp

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFramerFindsWhatTheReaderDoes: a Framer ends each message where Skip ends it, in whatever pieces it arrives.
func TestFramerFindsWhatTheReaderDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		many := rapid.IntRange(1, 4).Draw(t, "messages")
		for range many {
			wire = AppendValue(wire, values(3).Draw(t, "value"))
		}
		r, f := NewReader(bytes.NewReader(wire), Limits{}), NewFramer(false, Limits{})
		for rest, i := wire, 0; i < many; i++ {
			want, err := r.Skip()
			if err != nil {
				t.Fatal(err)
			}
			took := int64(0)
			for done := false; !done; {
				piece := rest[:rapid.IntRange(1, len(rest)).Draw(t, "piece")]
				var n int
				if n, done, err = f.Feed(piece); err != nil {
					t.Fatalf("%q: %v", piece, err)
				}
				rest, took = rest[n:], took+int64(n)
			}
			if took != want.Bytes || f.Bytes() != want.Bytes || f.Kind() != want.Kind {
				t.Fatalf("message %d of %q: %d bytes, %v; want %d, %v", i, wire, took, f.Kind(), want.Bytes, want.Kind)
			}
		}
	})
}

func TestFramerRequests(t *testing.T) {
	for _, c := range []struct {
		wire string
		args []string // that are kept
		many int
	}{
		{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{"GET", "k"}, 2},
		{"PING\r\n", []string{"PING"}, 1},
		{"get key\n", []string{"get key"}, 1},
		{"\r\n", nil, 0},
		{"*0\r\n", nil, 0},
		{
			"*2\r\n$0\r\n\r\n$30\r\n" + strings.Repeat("x", 30) + "\r\n",
			[]string{"", strings.Repeat("x", KeptArgBytes)},
			2,
		},
	} {
		for piece := 1; piece <= len(c.wire); piece++ {
			f := NewFramer(true, Limits{})
			rest, done := []byte(c.wire), false
			for len(rest) > 0 && !done {
				n, ended, err := f.Feed(rest[:min(piece, len(rest))])
				if err != nil {
					t.Fatalf("%q in pieces of %d: %v", c.wire, piece, err)
				}
				rest, done = rest[n:], ended
			}
			if !done || len(rest) > 0 || f.Args() != c.many {
				t.Fatalf("%q in pieces of %d: done %v, %d bytes left, %d arguments", c.wire, piece, done, len(rest),
					f.Args())
			}
			for i, want := range c.args {
				if got := string(f.Arg(i)); got != want {
					t.Errorf("%q in pieces of %d: argument %d is %q, want %q", c.wire, piece, i, got, want)
				}
			}
		}
	}
}

func TestFramerRefuses(t *testing.T) {
	for _, wire := range []string{"*1\r\n:1\r\n", "*x\r\n", "*1\r\n$2\r\nabc\r\n", "*" + strings.Repeat("1", 200)} {
		if _, _, err := NewFramer(true, Limits{}).Feed([]byte(wire)); err == nil {
			t.Errorf("%q: no error", wire)
		}
	}
}

// TestFramerSkips: what nobody saw can be passed over within a bulk string and its line end, and nowhere else.
func TestFramerSkips(t *testing.T) {
	for _, c := range []struct {
		before   string
		skip     int64
		done, ok bool
		after    string
	}{
		{"", 1, false, false, ""},
		{"+O", 1, false, false, ""},
		{"*2\r\n$10\r\nab", 8, false, true, "\r\n+OK\r\n"},
		{"*2\r\n$10\r\nab", 9, false, true, "\n+OK\r\n"},
		{"*2\r\n$10\r\nab", 10, false, true, "+OK\r\n"},
		{"*2\r\n$10\r\nab", 11, false, false, ""},
		{"$10\r\nab", 9, false, true, "\n"},
		{"$10\r\nab", 10, true, true, ""},
		{"$10\r\n0123456789", 2, true, true, ""},
		{"$10\r\nab", 11, false, false, ""},
	} {
		f := NewFramer(false, Limits{})
		if _, _, err := f.Feed([]byte(c.before)); err != nil {
			t.Fatal(err)
		}
		done, ok := f.Skip(c.skip)
		if done != c.done || ok != c.ok {
			t.Errorf("%q and %d bytes: done %v, ok %v", c.before, c.skip, done, ok)
		}
		if !ok || done {
			continue
		}
		n, done, err := f.Feed([]byte(c.after + "+more"))
		if n != len(c.after) || !done || err != nil || f.Bytes() != int64(len(c.before)+len(c.after))+c.skip {
			t.Errorf("%q, %d bytes and %q: took %d, done %v, %v; %d bytes", c.before, c.skip, c.after, n, done, err,
				f.Bytes())
		}
	}
}

// FuzzFramer: whatever arrives in whatever pieces, a Framer takes bytes or refuses them, and agrees with itself.
func FuzzFramer(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), uint8(3), true)
	f.Add([]byte("%1\r\n+a\r\n=5\r\ntxt:x\r\n"), uint8(1), false)
	f.Add([]byte("|1\r\n+a\r\n:1\r\n-ERR x\r\n"), uint8(2), false)
	f.Fuzz(func(t *testing.T, wire []byte, piece uint8, requests bool) {
		ends := func(piece int) (out []int, failed bool) {
			fr := NewFramer(requests, Limits{})
			for at := 0; at < len(wire); {
				n, done, err := fr.Feed(wire[at:min(at+piece, len(wire))])
				at += n
				if err != nil {
					return out, true
				}
				if n == 0 && !done {
					t.Fatalf("took nothing of %q at %d", wire, at)
				}
				if done {
					out = append(out, at)
				}
			}
			return out, false
		}
		whole, failed := ends(len(wire) + 1)
		parts, failed2 := ends(int(piece)%16 + 1)
		if failed != failed2 || len(whole) != len(parts) {
			t.Fatalf("%q: whole %v %v, in parts %v %v", wire, whole, failed, parts, failed2)
		}
		for i := range whole {
			if whole[i] != parts[i] {
				t.Fatalf("%q: whole %v, in parts %v", wire, whole, parts)
			}
		}
	})
}
