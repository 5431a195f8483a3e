package caller

import (
	"math"
	"testing"

	"slowpath/internal/diagnose/facts"
)

// TestUnsentCalls: while a process stands still it makes as many calls as at other times, one on each free connection
// at most, and each waits for half of the stall.
func TestUnsentCalls(t *testing.T) {
	const ms = int64(1e6)
	n := &facts.Node{Case: &facts.Case{StartNs: 0, EndNs: 10_000 * ms}}
	caller := func(conns int, calls int64) *Caller {
		c := &Caller{}
		for range conns {
			c.Conns = append(c.Conns, &Conn{Calls: calls})
		}
		return c
	}
	stopped := func(long int64, conns ...string) (out []unreadReply) {
		for _, conn := range conns {
			out = append(out, unreadReply{facts.Span{FromNs: 1000 * ms, ToNs: (1000 + long) * ms}, conn})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		c      *Caller
		unread []unreadReply
		wantMs float64
	}{
		{"20 calls in 100 ms, on four free connections", caller(5, 400), stopped(100, "a"), 4 * 50},
		{"two of them wait for their replies", caller(5, 400), stopped(100, "a", "b"), 3 * 50},
		{"a call each 20 ms", caller(50, 10), stopped(100, "a"), 500.0 / 9900 * 100 * 50},
		{"one connection", caller(1, 400), stopped(100, "a"), 0},
		{"all replies read", caller(5, 400), nil, 0},
	} {
		if got := unsentNs(n, tt.c, tt.unread); math.Abs(got/1e6-tt.wantMs) > 1e-6 {
			t.Errorf("%s: %v ms, want %v", tt.name, got/1e6, tt.wantMs)
		}
	}
}
