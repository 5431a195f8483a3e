package resp

import (
	"bytes"
	"strings"
	"testing"
)

// endless delivers the same bytes again and again.
type endless struct {
	wire []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], e.wire[e.at:])
		n += c
		e.at = (e.at + c) % len(e.wire)
	}
	return n, nil
}

// traffic is replies of the hot path, and some of every kind.
func traffic() map[string]string {
	kinds := ""
	for _, test := range replies {
		kinds += test.wire
	}
	return map[string]string{
		"OK":       "+OK\r\n",
		"bulk 100": "$100\r\n" + strings.Repeat("x", 100) + "\r\n",
		"bulk 1MB": "$1000000\r\n" + strings.Repeat("x", 1_000_000) + "\r\n",
		"mget 10":  "*10\r\n" + strings.Repeat("$10\r\n0123456789\r\n", 10),
		"moved":    "-MOVED 3999 127.0.0.1:6381\r\n",
		"kinds":    kinds,
	}
}

func TestSkipDoesNotAllocate(t *testing.T) {
	for name, wire := range traffic() {
		r := NewReader(&endless{wire: []byte(wire)}, Limits{})
		n := testing.AllocsPerRun(100, func() {
			for range len(replies) {
				if s, err := r.Skip(); err != nil || s.Kind == Error && len(s.ErrorCode()) == 0 {
					t.Fatal(s, err)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestAppendCommandDoesNotAllocate(t *testing.T) {
	buf, key := make([]byte, 0, 1024), "key:1"
	n := testing.AllocsPerRun(100, func() {
		buf = AppendCommand(buf[:0], "SET", key, "value")
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSkip(b *testing.B) {
	for name, wire := range traffic() {
		b.Run(name, func(b *testing.B) {
			r := NewReader(&endless{wire: []byte(wire)}, Limits{})
			b.ReportAllocs()
			total := int64(0)
			for b.Loop() {
				s, err := r.Skip()
				if err != nil {
					b.Fatal(err)
				}
				total += s.Bytes
			}
			b.SetBytes(total / int64(b.N))
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for name, wire := range traffic() {
		b.Run(name, func(b *testing.B) {
			r := NewReader(&endless{wire: []byte(wire)}, Limits{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendCommand(b *testing.B) {
	buf, value := make([]byte, 0, 1024), string(bytes.Repeat([]byte("x"), 100))
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendCommand(buf[:0], "SET", "key:000000012345", value)
	}
}
