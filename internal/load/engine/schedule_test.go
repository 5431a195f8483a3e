package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseSchedule(t *testing.T) {
	got, err := ParseSchedule(strings.NewReader("# warm up\n10 1000\n\n0.5 10000 # peak\n"))
	want := []Stretch{{Lasts: 10 * time.Second, From: 1000, To: 1000}, {
		Lasts: 500 * time.Millisecond, From: 10000,
		To: 10000,
	}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, why := range map[string]string{
		"": "no line", "10": "line 1: give two numbers", "1 1\n-1 5": "line 2",
		"x 5": "above 0", "5 x": "calls per second", "5 -1": "calls per second", "5 0\n1 0": "all rates are 0",
		"NaN 1": "above 0", "Inf 1": "above 0", "1 1 1": "two numbers",
	} {
		if ss, err := ParseSchedule(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v", text, ss, err)
		}
	}
}

// TestPause: in a stretch without calls none is due, and what comes after it is due at its time.
func TestPause(t *testing.T) {
	ss, err := ParseSchedule(strings.NewReader("0.5 0\n1 4\n2 0\n1 2\n1 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 3} {
		var due []time.Duration
		for w := range workers {
			a, err := newArrivals(ss, Uniform, w, workers, 1)
			if err != nil {
				t.Fatal(err)
			}
			for at, more := a.next(); more; at, more = a.next() {
				due = append(due, time.Duration(at))
			}
		}
		slices.Sort(due)
		want := []time.Duration{500, 750, 1000, 1250, 3500, 4000}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(due, want) {
			t.Errorf("%d workers: due at %v, want %v", workers, due, want)
		}
	}
	a, err := newArrivals(ss, Poisson, 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for at, more := a.next(); more; at, more = a.next() {
		if second := time.Duration(at).Seconds(); second < 0.5 || second >= 1.5 && second < 3.5 || second >= 4.5 {
			t.Errorf("a call is due in a pause, at %v s", second)
		}
	}
}

// FuzzParseSchedule: whatever a file holds is an error, or a schedule that the engine can follow.
func FuzzParseSchedule(f *testing.F) {
	f.Add("10 1000\n5 2000 # x")
	f.Add("1e-300 1e7")
	f.Fuzz(func(t *testing.T, text string) {
		ss, err := ParseSchedule(strings.NewReader(text))
		if err == nil && len(ss) == 0 {
			t.Error("no stretch and no error")
		}
		for _, s := range ss {
			if s.Lasts < 0 || !(s.From >= 0) || s.From != s.To {
				t.Errorf("%+v of %q", s, text)
			}
		}
	})
}
