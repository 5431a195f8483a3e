package bench

import (
	"slices"
	"testing"
)

// TestWhileChanged: the seconds with redirects and errors are named, and their latency next to that of the others.
func TestWhileChanged(t *testing.T) {
	series := []Second{
		{Second: 0, P99Ns: 1e6},
		{Second: 1, P99Ns: 40e6, Retried: 3},
		{Second: 2, P99Ns: 300e6, Errors: 1},
		{Second: 3, P99Ns: 2e6},
		{Second: 4, P99Ns: 20e6, Retried: 1},
	}
	r := &Result{Routing: &Routing{Retried: map[string]int64{"MOVED": 4}}, Series: series}
	want := []string{
		"Calls were sent again, or failed, in 3 seconds of the load (2-3, 5): the highest p99 of these is 300 ms, " +
			"that of the other seconds 2 ms.",
	}
	if got := whileChanged(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Series = series[:1]
	if got := whileChanged(r); got != nil {
		t.Errorf("without redirects: %q", got)
	}
	r.Series = nil
	for s := range 20 {
		r.Series = append(r.Series, Second{Second: s, P99Ns: 1e6, Retried: int64(s % 2)})
	}
	want = []string{
		"Calls were sent again, or failed, in 10 seconds of the load (2, 4, 6, 8, 10, …): the highest p99 of these " +
			"is 1 ms, that of the other seconds 1 ms.",
	}
	if got := whileChanged(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Routing.Retried = nil // a cluster whose replies are errors, but which did not change
	if got := whileChanged(r); got != nil {
		t.Errorf("of errors alone: %q", got)
	}
}
