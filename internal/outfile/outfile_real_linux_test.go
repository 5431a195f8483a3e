package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

// TestLinkedParents: in the path of a file, a link of another user is not followed, at any depth, also where it is
// reached by another link; those of root are, relative and absolute ones. Nothing is made behind it.
func TestLinkedParents(t *testing.T) {
	needs.Real(t, needs.Root)
	const other = 4321
	dir, victim := t.TempDir(), t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	check := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(at("theirs"), 0o755), os.Chown(at("theirs"), other, other),
		os.Mkdir(filepath.Join(victim, "deeper"), 0o755), os.Symlink(victim, at("theirs", "link")),
		os.Symlink(filepath.Join("..", filepath.Base(victim)), at("theirs", "relative")),
		os.Symlink(at("theirs", "link"), at("root's")),
		os.Symlink("theirs", at("beside")), os.Symlink(at("theirs"), at("absolute")),
		os.Symlink("../beside/../beside", at("theirs", "up")))
	for _, name := range []string{"link", "relative"} {
		check(os.Lchown(at("theirs", name), other, other))
	}
	t.Chdir(at("theirs"))
	for _, path := range []string{
		at("theirs", "link", "file"), at("theirs", "link", "deeper", "file"), at("beside", "link", "file"),
		at("root's", "file"), at("root's", "deeper", "file"), "link/file", "./link/deeper/file",
		"../theirs/link/deeper/../file", "link/../file", at("theirs", "relative", "file"),
	} {
		for what, open := range map[string]func(string) (*os.File, error){"Create": Create, "Overwrite": Overwrite} {
			if f, err := open(path); err == nil || !strings.Contains(err.Error(), "link of another user") {
				t.Errorf("%s(%s): %v, %v", what, path, f, err)
			}
		}
		if err := Directory(path + "/new"); err == nil {
			t.Errorf("a directory below %s", path)
		}
		if err := Remove(path); err == nil {
			t.Errorf("Remove(%s)", path)
		}
	}
	if left, err := filepath.Glob(filepath.Join(victim, "*")); err != nil || len(left) != 1 {
		t.Errorf("made behind the link: %v, %v", left, err)
	}
	for i, path := range []string{
		at("theirs", "0"), at("beside", "1"), at("absolute", "2"), at("theirs", "up", "3"), "4", "../theirs/5",
		"../beside/6", ".././/theirs/7", at("theirs", "..", "beside", "8"),
	} {
		f, err := Create(path)
		check(err, f.Close())
		if _, err := os.Stat(at("theirs", strconv.Itoa(i))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		check(Remove(path))
	}
}

// TestReplacedParent: SQLite opens files by their paths: what another user put in the place of a directory since the
// file was made is noticed before anything is written.
func TestReplacedParent(t *testing.T) {
	needs.Real(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "file")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := OpenTwice(f); err != nil {
		t.Errorf("open twice: %v", err)
	}
	again.Close()
	if err := errors.Join(os.Rename(filepath.Dir(path), filepath.Join(dir, "b")), os.Mkdir(filepath.Dir(path), 0o700),
		os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	replacement, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer replacement.Close()
	if err := OpenTwice(f); err == nil {
		t.Error("the replacement is taken for the file")
	}
}
