package recording

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopy: a copy is a whole recording of what was seen so far, and the writer goes on.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "watch.slowpath"), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta(MetaStart, "1000000000000")
	add := func(op string) { w.Call(Call{Source: SourceTap, Op: op, IntendedNs: 1001e9, EndNs: 1002e9}) }
	add("GET")
	copied := filepath.Join(dir, "it's a copy.slowpath")
	if err := w.Copy(copied, 1003e9); err != nil {
		t.Fatal(err)
	}
	add("SET")
	if err := w.Copy(copied, 1004e9); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a file that exists: %v", err)
	}
	if err := w.Copy(filepath.Join(dir, "no", "such"), 1004e9); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that does not exist: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	from, to := rec.Window()
	if len(rec.Calls) != 1 || rec.Calls[0].Op != "GET" || rec.Damage != "" || from != 1000e9 || to != 1003e9 {
		t.Errorf("%+v %s of [%d, %d)", rec.Calls, rec.Damage, from, to)
	}
	if rec, err = Open(filepath.Join(dir, "watch.slowpath")); err != nil || len(rec.Calls) != 2 {
		t.Errorf("%+v %v", rec, err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 2 {
		t.Errorf("files are left: %v", names)
	}
}

// TestCopyOfNothing: nothing is left of a copy that cannot be made.
func TestCopyOfNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "watch.slowpath"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := os.Remove(filepath.Join(dir, "watch.slowpath")); err != nil {
		t.Fatal(err)
	}
	if err := w.Copy(filepath.Join(dir, "copy.slowpath"), 1); err == nil {
		t.Error("a recording that is gone was copied")
	}
	if _, err := os.Lstat(filepath.Join(dir, "copy.slowpath")); err == nil {
		t.Error("a file is left")
	}
}
