//go:build linux

package tap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"slowpath/internal/source/hostfs"
)

// TestMappedFilesAreBounded: of a process with more mappings than are read, nothing is searched, and the error says so.
func TestMappedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	maps := filepath.Join(dir, "proc/7/maps")
	if err := os.MkdirAll(filepath.Dir(maps), 0o700); err != nil {
		t.Fatal(err)
	}
	line := "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libssl.so.3\n"
	if err := os.WriteFile(maps, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	files := hostfs.Root{Dir: dir}
	all := func(string) bool { return true }
	want := filepath.Join(dir, "proc/7/root/usr/lib/libssl.so.3")
	if got, err := mappedFiles(files, 7, all); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Truncate(maps, hostfs.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	if got, err := mappedFiles(files, 7, all); !errors.Is(err, hostfs.ErrTooLarge) {
		t.Errorf("%q, %v", got, err)
	}
}
