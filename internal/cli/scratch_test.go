package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNoPlace: where no directory can be written, one line says so of each, and ends in the fix.
func TestNoPlace(t *testing.T) {
	var s Scratch
	parents := []string{filepath.Join(t.TempDir(), "none"), "/proc"}
	dir, _, _, err := s.Place(parents)
	if err == nil || dir != "" {
		t.Fatalf("it is %q", dir)
	}
	for _, want := range append(parents, "set TMPDIR to a directory with 8.39 MB free, or give --record FILE") {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
	dir, bytes, note, err := s.Place(append(parents, t.TempDir()))
	if err != nil || bytes < leastSpace/4*3 || note == "" {
		t.Errorf("%q, %d bytes, %q, %v", dir, bytes, note, err)
	}
	s.Remove()
	if left, _ := filepath.Glob(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
