package main

import (
	"errors"
	"slices"
	"testing"

	"slowpath/internal/wire/target"
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

// TestNotCommand: a name without an address that is spelled about as a command may have been meant as one.
func TestNotCommand(t *testing.T) {
	root := testApp().root()
	topology, _, err := root.Find([]string{"topology"})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"wach:6379":  "connecting to wach:6379: no address; or was a command meant: slowpath topology watch",
		"redis:6379": "connecting to redis:6379: no address",
	} {
		unknown := &target.Error{Addr: addr, Kind: target.ErrNameNotFound, Text: "no address"}
		got := testApp().elsewhere(topology, unknown)
		if got.Error() != want || !errors.Is(got, target.ErrNameNotFound) {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
