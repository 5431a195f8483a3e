package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"slowpath/internal/house/needs"
)

// TestRewriteBuilds: what was rewritten can be built.
func TestRewriteBuilds(t *testing.T) {
	needs.Long(t, needs.Command("go", "golang"))
	dir := t.TempDir()
	root, overlay := rewritten(t, dir)
	build := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "judge"), rejudgePath)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
