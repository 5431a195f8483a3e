package cli

import "testing"

// TestSizes: sizes and long durations as they are written.
func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"64MB": 64 << 20, "1gb": 1 << 30, "512": 512, "10 KB": 10 << 10,
		"7B": 7,
	} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
		var again Size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s: printed as %s: %d, %v", text, &s, again, err)
		}
	}
	for _, text := range []string{"", "MB", "-1MB", "1.5MB", "9999999999GB", "64Mb8"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, s)
		}
	}
	for text, want := range map[string]string{"30d": "30d", "36h": "36h0m0s", "0.5d": "12h0m0s", "24h": "1d"} {
		var d Days
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v", text, &d, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1e99d", "NaNd", "soon"} {
		var d Days
		if err := d.Set(text); err == nil {
			t.Errorf("%q is taken as %s", text, &d)
		}
	}
}
