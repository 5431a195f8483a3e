package cli

import "testing"

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"10/s": 10, "10": 10, "600/m": 10, "36000/h": 10, "0.5/s": 0.5} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0", "-1/s", "NaN", "Inf", "1e9/s", "10/d", "/s"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
