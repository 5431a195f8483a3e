package house

import (
	"bytes"
	"os"
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

// TestBoundsDocument: docs/bounds.md is made of the comments of the bounds, and of what the sensitivity run found.
func TestBoundsDocument(t *testing.T) {
	const file = "docs/bounds.md"
	all, _, err := bounds.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	found, err := bounds.ReadSensitivities(bounds.SensitivityFile)
	if err != nil {
		t.Fatal(err)
	}
	if stale := found.Stale(all); len(stale) > 0 {
		t.Errorf("%s is not of these bounds: run make sensitivity, which judges only these: %v", bounds.SensitivityFile,
			stale)
	}
	want := bounds.Markdown(all, found)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the bounds make (%v): run make docs", file, err)
	}
}
