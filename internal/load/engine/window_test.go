//go:build linux

package engine

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestWaiting: calls leave the queue in order, with their own requests.
func TestWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q waiting
		var want [][]byte
		first := int64(0) // key of want[0]
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(want) > 0 && rapid.Bool().Draw(t, "take") {
				k, request := q.take()
				if k.key != first || !bytes.Equal(request, want[0]) {
					t.Fatalf("call %d with %q, want %d with %q", k.key, request, first, want[0])
				}
				want, first = want[1:], first+1
				continue
			}
			request := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "request")
			q.put(call{inflightCall: inflightCall{key: first + int64(len(want))}}, request)
			want = append(want, request)
		}
		if q.n != len(want) {
			t.Fatalf("%d calls wait, want %d", q.n, len(want))
		}
	})
}

// TestWindowIsBounded: a stream that never runs empty does not make its window grow.
func TestWindowIsBounded(t *testing.T) {
	var w window
	request := bytes.Repeat([]byte("x"), 100)
	for range 16 {
		w.add(request)
	}
	for range 100_000 {
		w.add(request)
		w.drop(len(request))
	}
	if len(w.b)-w.from != 1600 || cap(w.b) > 64<<10 {
		t.Errorf("%d bytes are kept in %d", len(w.b)-w.from, cap(w.b))
	}
}
