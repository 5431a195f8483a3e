package load

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseSchedule(t *testing.T) {
	got, err := ParseSchedule(strings.NewReader("# warm up\n10 1000\n\n0.5 10000 # peak\n"))
	want := []Stretch{{Lasts: 10 * time.Second, From: 1000, To: 1000}, {Lasts: 500 * time.Millisecond, From: 10000, To: 10000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, why := range map[string]string{"": "no line", "10": "line 1: give two numbers", "1 1\n-1 5": "line 2", "x 5": "above 0", "5 x": "calls per second", "5 0": "calls per second",
		"NaN 1": "above 0", "Inf 1": "above 0", "1 1 1": "two numbers"} {
		if ss, err := ParseSchedule(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v", text, ss, err)
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
			if s.Lasts < 0 || !(s.From > 0) || s.From != s.To {
				t.Errorf("%+v of %q", s, text)
			}
		}
	})
}
