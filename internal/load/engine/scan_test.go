package engine

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

// ended is what a scanner says of a reply.
type ended struct {
	at    int // the byte after it
	kind  byte
	null  bool
	error bool
}

// scanned runs a scanner over b as it comes in pieces of a size, the first of which may be of another, and gives the
// replies up to the end or an error.
func scanned(b []byte, first, size int, keep bool) (all []ended, bodies []string, err error) {
	s := scanner{keep: keep}
	var carry []byte
	at := 0 // of carry in b
	for from := 0; from < len(b); {
		piece := b[from:min(from+size, len(b))]
		if from == 0 && first > 0 {
			piece = b[:first]
		}
		from += len(piece)
		carry = append(carry, piece...)
		for len(carry) > 0 {
			n, done, err := s.next(carry)
			if keep {
				n = s.whole(carry, n, done)
			}
			at += n
			if err != nil {
				return all, bodies, err
			}
			if done {
				all = append(all, ended{at, s.kind, s.null, s.line != nil})
				bodies = append(bodies, string(s.reply))
			}
			carry = carry[n:]
			if !done {
				break
			}
		}
		carry = bytes.Clone(carry)
	}
	return all, bodies, nil
}

// readReplies is what the reader of package resp says of the same bytes, up to the end or its first error.
func readReplies(b []byte) (all []ended, bodies []string) {
	r := resp.NewReader(bytes.NewReader(b), resp.Limits{MaxDepth: maxDepth / 2})
	for {
		v, err := r.Read()
		if err != nil {
			return all, bodies
		}
		at := len(b) - r.Buffered()
		rest := b
		if len(all) > 0 {
			rest = b[all[len(all)-1].at:]
		}
		e := ended{at: at, null: isNothing(v), error: hasError(v)}
		e.kind = firstByte(rest, v)
		all = append(all, e)
		bodies = append(bodies, string(rest[:at-(len(b)-len(rest))]))
	}
}

// isNothing: null, or no elements but such.
func isNothing(v resp.Value) bool {
	switch v.Kind {
	case resp.Null:
		return true
	case resp.Array, resp.Set, resp.Map, resp.Push:
		return !slices.ContainsFunc(v.Elems, func(e resp.Value) bool { return !isNothing(e) })
	}
	return false
}

func hasError(v resp.Value) bool { return v.Kind.IsError() || slices.ContainsFunc(v.Elems, hasError) }

// firstByte is that of a reply; where attributes come before it, that which its kind has.
func firstByte(b []byte, v resp.Value) byte {
	if b[0] != '|' {
		return b[0]
	}
	return resp.AppendValue(nil, resp.Value{Kind: v.Kind, Str: v.Str, Elems: v.Elems})[0]
}

// FuzzScanner: what package resp reads as replies the scanner finds to end at the same bytes, and to be of the same
// kind, wherever the stream is cut.
func FuzzScanner(f *testing.F) {
	for _, wire := range []string{
		"+OK\r\n-ERR no\r\n:1\r\n$3\r\nabc\r\n$-1\r\n*-1\r\n_\r\n*0\r\n%0\r\n", "*3\r\n:1\r\n$1\r\nx\r\n*1\r\n_\r\n",
		"!10\r\nSYNTAX a\r\n\r\n=8\r\ntxt:text\r\n~2\r\n:1\r\n:2\r\n", ">2\r\n+invalidate\r\n_\r\n+OK\r\n",
		"|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n", "*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n",
		"|1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n-ERR x\r\n", "|0\r\n_\r\n",
		"+a\rb\nc\r\n-ERR two\nlines\r\n+\r\r\n+\n\r\n", ",-1.5e3\r\n,inf\r\n#t\r\n(-349\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "$0\r\n\r\n",
		strings.Repeat("*1\r\n", 31) + ":1\r\n", "$5\r\na\r\nbc\r\n:\r\n",
	} {
		f.Add([]byte(wire))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2000 {
			t.Skip("all cuts of it would take long")
		}
		want, bodies := readReplies(b)
		check := func(how string, first, size int, keep bool) {
			got, kept, _ := scanned(b, first, size, keep)
			if len(got) < len(want) {
				t.Fatalf("%q, %s: %d replies, want %d", b, how, len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%q, %s: reply %d is %+v, want %+v", b, how, i, got[i], want[i])
				}
				if keep && kept[i] != bodies[i] {
					t.Fatalf("%q, %s: reply %d has %q, want %q", b, how, i, kept[i], bodies[i])
				}
			}
		}
		for _, keep := range []bool{false, true} {
			check("at once", 0, len(b)+1, keep)
			check("byte by byte", 0, 1, keep)
			for cut := 1; cut < len(b); cut++ {
				check("in two", cut, len(b)+1, keep)
			}
		}
	})
}
