package cli

import (
	"slices"
	"testing"
)

// TestSimilar: a word is found by its beginning, by about its spelling, by its letters in another order, and by a part.
func TestSimilar(t *testing.T) {
	known := []string{"for", "slow", "record", "explain", "slow-command"}
	for word, want := range map[string][]string{
		"fro": {"for"}, "recrod": {"record"}, "exp": {"explain"}, "command": {"slow-command"}, "xyz": nil, "": nil,
	} {
		if got := similar(word, known); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
