package experiment

import (
	"slices"
	"testing"
)

func TestParseAxis(t *testing.T) {
	for text, want := range map[string]Axis{
		"connections=1..1000": {Connections, []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}},
		"connections=3..30":   {Connections, []int{3, 5, 10, 20, 30}},
		"connections=1..2":    {Connections, []int{1, 2}},
		"pipeline=8,1,2,4,4":  {Pipeline, []int{1, 2, 4, 8}},
		"threads=1,2":         {Threads, []int{1, 2}},
		"rate=1000..16000/5":  {Rate, []int{1000, 2000, 4000, 8000, 16000}},
		"value-size=1..4/12":  {ValueSize, []int{1, 2, 3, 4}},
	} {
		got, err := ParseAxis(text)
		if err != nil || got.Name != want.Name || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseAxisRefuses(t *testing.T) {
	for _, text := range []string{
		"", "connections", "connections=", "colour=1..2", "connections=5", "connections=5,5",
		"connections=0..5", "connections=-1,2",
		"connections=9..3", "connections=1..x", "connections=1..10/1", "connections=1..10/x", "connections=1..10/1001",
		"rate=1.5,2", "connections=1..99999999999",
	} {
		if a, err := ParseAxis(text); err == nil {
			t.Errorf("%q was taken for %v", text, a)
		}
	}
}

func FuzzParseAxis(f *testing.F) {
	f.Add("connections=1..1000")
	f.Add("rate=5..99/7")
	f.Add("pipeline=1,2,4")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAxis(s)
		if err != nil {
			return
		}
		if len(a.Values) < 2 || len(a.Values) > maxValues || a.Values[0] < 1 ||
			a.Values[len(a.Values)-1] > maxValue || !slices.IsSorted(a.Values) ||
			len(slices.Compact(slices.Clone(a.Values))) != len(a.Values) {
			t.Errorf("%q: %v", s, a)
		}
	})
}
