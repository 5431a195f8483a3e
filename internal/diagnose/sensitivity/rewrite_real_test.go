package main

import (
	"testing"

	"slowpath/internal/diagnose/bounds"
	"slowpath/internal/house/needs"
)

// TestRewrite: nearly all bounds can be scaled.
func TestRewrite(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	rewritten(t, t.TempDir())
}

// rewritten writes the sources of the diagnosis with scaled bounds into a directory.
func rewritten(t *testing.T, dir string) (root, overlay string) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, problems, err := bounds.Read(root)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	overlay, scaled, err := rewrite(root, dir, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(scaled)*10 < len(all)*9 {
		t.Errorf("%d of %d bounds can be scaled", len(scaled), len(all))
	}
	return root, overlay
}
