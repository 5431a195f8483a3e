package cluster

import "testing"

func TestRanges(t *testing.T) {
	for _, test := range []struct {
		slots []uint16
		want  string
	}{
		{nil, ""},
		{[]uint16{5}, "5"},
		{[]uint16{6, 5}, "5-6"},
		{[]uint16{1, 3, 2, 9, 9, 16383}, "1-3,9,16383"},
		{[]uint16{16382, 16383, 0}, "0,16382-16383"},
	} {
		if got := FormatRanges(Ranges(test.slots)); got != test.want {
			t.Errorf("%v: %q, want %q", test.slots, got, test.want)
		}
	}
}
