package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLinks: a link in the way is not followed, nor is anything else than a file.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	victim, old := at("victim"), at("old")
	for _, path := range []string{victim, old} {
		if err := os.WriteFile(path, []byte("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Symlink(victim, at("link")))
	check(os.Symlink(at("nowhere"), at("dangling")))
	check(os.Link(victim, at("hard")))
	check(syscall.Mkfifo(at("fifo"), 0o600))
	for _, name := range []string{"link", "dangling", "hard", "fifo", "."} {
		for what, open := range map[string]func(string) (*os.File, error){"Create": Create, "Overwrite": Overwrite} {
			if f, err := open(at(name)); err == nil {
				f.Close()
				t.Errorf("%s(%s) gives a file", what, name)
			}
		}
	}
	if body, err := os.ReadFile(victim); err != nil || string(body) != "kept" {
		t.Errorf("%s holds %q, %v", victim, body, err)
	}
	if _, err := os.Lstat(at("nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dangling link was followed: %v", err)
	}
}

func TestOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"a longer one", "short"} {
		f, err := Overwrite(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		f.Close()
		body, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err != nil || err2 != nil || string(body) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v, %v", body, info.Mode(), err, err2)
		}
	}
	if _, err := Create(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("creating it again: %v", err)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	made, link := filepath.Join(dir, "a", "b"), filepath.Join(dir, "link")
	if err := Directory(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Symlink(made, link); err != nil {
		t.Fatal(err)
	}
	if err := Directory(link); err != nil {
		t.Errorf("a link of this user: %v", err)
	}
}
