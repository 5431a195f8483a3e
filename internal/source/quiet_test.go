package source

import (
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// TestQuiet: a server that nobody else calls is called more rarely, until one of these calls is slow.
func TestQuiet(t *testing.T) {
	q := quiet{clock: clock.New(), slow: 5 * time.Millisecond}
	expect := func(what string, want int64) {
		t.Helper()
		if got := q.pace.Times(); got != want {
			t.Errorf("%s: pace %d, want %d", what, got, want)
		}
	}
	expect("before anything is known", 1)
	q.load(60)
	expect("slowpath's own calls alone", quietPace)
	q.called(recording.Call{}, time.Millisecond)
	expect("a usual call", quietPace)
	q.load(10_000)
	expect("others call it", 1)
	q.load(12)
	q.called(recording.Call{}, 5*time.Millisecond)
	expect("a slow call", 1)
	q.load(60)
	expect("and the time after it", 1)
	q.alert.Store(q.clock.Now() - 1)
	q.load(60)
	expect("nothing was slow for a while", quietPace)
}
