package random

import (
	"bytes"
	"path/filepath"
	"testing"

	"slowpath/internal/house/golden"
)

// TestAccuracyDocument: docs/accuracy.md is what the kept results of unseen runs say (scripts/accuracy).
func TestAccuracyDocument(t *testing.T) {
	dir := t.TempDir()
	golden.Unpack(t, "unseen.tar.zst", dir)
	dir = filepath.Join(dir, "unseen")
	first, n, err := Kept(dir)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Series{Dir: dir, Seed: first, N: n, JudgeOnly: true, Done: func(Run) {}}.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Markdown(&text, []Report{Summarise(runs, first, n, "")}, "scripts/accuracy"); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../../../../docs/accuracy.md", text.Bytes())
}
