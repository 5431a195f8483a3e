package slowpath_test

import (
	"testing"

	"slowpath/internal/diagnose/bounds"
)

// TestBounds fails on each number of the diagnosis that decides and has no reason.
func TestBounds(t *testing.T) {
	all, problems, err := bounds.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	if len(all) == 0 {
		t.Error("found no bounds")
	}
}
