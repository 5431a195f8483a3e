package folder_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/folder/foldertest"
)

func check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestNoLinkIsFollowed: by no method, wherever it leads: to the directory itself, to one beside it, out of it, or to
// nothing. What it leads to stays as it was, and only the link is removed.
func TestNoLinkIsFollowed(t *testing.T) {
	base := t.TempDir()
	f := foldertest.Open(t, filepath.Join(base, "data"))
	outside := filepath.Join(base, "outside")
	check(t, os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), []byte("theirs"), 0o600),
		os.Mkdir(f.Path("beside"), 0o700), os.WriteFile(f.Path("beside", "file"), []byte("theirs"), 0o600),
		os.WriteFile(f.Path("file"), []byte("theirs"), 0o600))
	kept := []string{filepath.Join(outside, "file"), f.Path("beside", "file"), f.Path("file")}
	for _, to := range []string{
		outside, filepath.Join(outside, "file"), "../outside", "beside", "file", "beside/file", ".", "nothing",
		f.Path("beside"), f.Path("file"), "/proc/self/root", "/proc/self/fd/0",
	} {
		check(t, os.Symlink(to, f.Path("link")))
		for what, try := range map[string]func() error{
			"Sub":      func() error { return closed(f.Sub("link")) },
			"Existing": func() error { return closed(f.Existing("link")) },
			"Open":     func() error { return closed(f.Open("link")) },
			"write":    func() error { return closed(f.OpenFile("link", os.O_WRONLY)) },
			"make":     func() error { return closed(f.OpenFile("link", os.O_RDWR|os.O_CREATE)) },
			"Create":   func() error { return closed(f.Create("link")) },
			"Mkdir":    func() error { return f.Mkdir("link") },
			"Read":     func() error { _, err := f.Read("link", 100); return err },
			"Publish":  func() error { return f.Publish("link", "published") },
			"a path":   func() error { return closed(f.Open("link/file")) },
			"a sub":    func() error { return closed(f.Sub("beside/..")) },
		} {
			if err := try(); err == nil {
				t.Errorf("%s through a link to %s", what, to)
			}
		}
		_ = os.Remove(f.Path("nothing")) // a file was made there, and none was given
		if f.Size("link") != 0 {
			t.Errorf("the size of a link to %s", to)
		}
		check(t, f.RemoveAll("link"))
	}
	for _, name := range kept {
		if body, err := os.ReadFile(name); err != nil || string(body) != "theirs" {
			t.Errorf("%s holds %q, %v", name, body, err)
		}
	}
}

// closed closes what should not have been opened.
func closed[T interface{ Close() error }](f T, err error) error {
	if err == nil {
		f.Close()
	}
	return err
}

// TestFiles: only regular ones, of a bounded size, for this user alone.
func TestFiles(t *testing.T) {
	f := foldertest.Open(t, filepath.Join(t.TempDir(), "data"))
	check(t, syscall.Mkfifo(f.Path("fifo"), 0o600), f.Mkdir("dir"))
	for _, name := range []string{"fifo", "dir", "none"} {
		if _, err := f.Open(name); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	for _, text := range []string{"a longer text", "short"} {
		check(t, f.Replace("text", []byte(text)))
		if got, err := f.Read("text", 100); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := f.Read("text", 4); err == nil {
		t.Errorf("more than its bound: %q", got)
	}
	if info, err := f.Lstat("text"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := f.Create("text"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("once more: %v", err)
	}
	check(t, f.Replace("new", []byte("new")))
	if err := f.Publish("new", "text"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in the place of another: %v", err)
	}
	if _, err := f.Entries(2); err == nil {
		t.Error("more entries than its bound")
	}
}

// TestAgain: a directory that somebody removed can be made and opened again; what is opened in it then is there.
func TestAgain(t *testing.T) {
	f := foldertest.Open(t, filepath.Join(t.TempDir(), "data"))
	sub, err := f.Sub("sub")
	check(t, err, os.Remove(f.Path("sub")))
	if err := sub.Replace("x", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that is gone: %v", err)
	}
	check(t, sub.Again(), sub.Replace("x", []byte("x")))
	if _, err := os.Stat(f.Path("sub", "x")); err != nil {
		t.Error(err)
	}
}

// TestCheckOwners: a directory that others can write, or replace, is refused, and the error ends in the fix.
func TestCheckOwners(t *testing.T) {
	base := t.TempDir()
	check(t, os.Chmod(base, 0o700), os.Chmod(filepath.Dir(base), 0o755))
	for name, c := range map[string]struct {
		parent, own os.FileMode
		want        string // of the error; empty: none
	}{
		"private":           {0o755, 0o700, ""},
		"readable":          {0o755, 0o755, ""},
		"in one like /tmp":  {0o777 | os.ModeSticky, 0o700, ""},
		"of a group":        {0o755, 0o770, "other users can write there; chmod go-w "},
		"of everybody":      {0o755, 0o777, "other users can write there; chmod go-w "},
		"like /tmp":         {0o755, 0o777 | os.ModeSticky, "other users can write there; chmod go-w "},
		"parent of a group": {0o775, 0o700, "put another directory in its place; chmod go-w "},
		"parent of all":     {0o777, 0o700, "put another directory in its place; chmod go-w "},
	} {
		parent := filepath.Join(base, strings.ReplaceAll(name, "/", " "))
		own := filepath.Join(parent, "data")
		check(t, os.MkdirAll(own, 0o700), os.Chmod(own, c.own), os.Chmod(parent, c.parent))
		link := parent + " link"
		check(t, os.Symlink(own, link))
		for _, path := range []string{own, link} {
			err := folder.CheckOwners(path, os.Geteuid())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", path, err, c.want)
			}
		}
	}
	const another = 54321
	own := filepath.Join(base, "private", "data")
	if err := folder.CheckOwners(own, another); os.Geteuid() != 0 && err == nil {
		t.Error("a directory of another user is taken")
	}
}
