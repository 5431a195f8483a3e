package main

import (
	"errors"
	"testing"

	"slowpath/internal/wire/target"
)

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
