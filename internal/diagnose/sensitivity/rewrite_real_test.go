package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"slowpath/internal/house/needs"

	"slowpath/internal/diagnose/bounds"
)

// TestRewrite: the diagnosis can be built with nearly all of its bounds scaled.
func TestRewrite(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, problems, err := bounds.Read(root)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	dir := t.TempDir()
	overlay, scaled, err := rewrite(root, dir, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(scaled)*10 < len(all)*9 {
		t.Errorf("%d of %d bounds can be scaled", len(scaled), len(all))
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "judge"), rejudgePath)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
