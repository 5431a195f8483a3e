package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWithin: the recordings of an incident that are judged together are the first ones, up to a size. A file that is
// gone is left to who reads it.
func TestWithin(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, bytes := range map[string]int{"a": 30, "b": 60, "c": 20, "d": 1} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	slices.Sort(paths)
	paths = slices.Insert(paths, 1, filepath.Join(dir, "gone"))
	for most, want := range map[int64]int{1000: 5, 111: 5, 110: 4, 109: 3, 90: 3, 89: 2, 30: 2, 1: 1} {
		in, out := within(paths, most)
		if len(in) != want || !slices.Equal(slices.Concat(in, out), paths) {
			t.Errorf("%d bytes: %q and %q, want %d", most, in, out, want)
		}
	}
}
