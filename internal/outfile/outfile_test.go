package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLinks: a link in the way is not followed, and nothing of another user is written into.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	victim, theirs, old := at("victim"), at("theirs"), at("old")
	for _, path := range []string{victim, theirs, old} {
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
	names := []string{"link", "dangling", "hard", "fifo", "."}
	if os.Geteuid() == 0 {
		check(os.Chown(theirs, 4321, 4321))
		names = append(names, "theirs")
	}
	for _, name := range names {
		for what, open := range map[string]func(string) (*os.File, error){"Create": Create, "Overwrite": Overwrite} {
			if f, err := open(at(name)); err == nil {
				f.Close()
				t.Errorf("%s(%s) gives a file", what, name)
			}
		}
	}
	for _, path := range []string{victim, theirs} {
		if body, err := os.ReadFile(path); err != nil || string(body) != "kept" {
			t.Errorf("%s holds %q, %v", path, body, err)
		}
	}
	if _, err := os.Lstat(at("nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dangling link was followed: %v", err)
	}
}

// TestDirectoryOfCaller: a directory that root makes for somebody who called sudo is theirs where they could have made
// it, and root's elsewhere.
func TestDirectoryOfCaller(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const uid, gid = 4321, 1234
	t.Setenv("SUDO_UID", "4321")
	t.Setenv("SUDO_GID", "1234")
	home, roots := t.TempDir(), t.TempDir()
	if err := os.Chown(home, uid, gid); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int{
		filepath.Join(home, "kept", "deeper"): uid, filepath.Join(home, "kept"): uid, filepath.Join(roots, "kept"): 0,
	} {
		if err := Directory(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != want || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is of %d, want %d: %v", dir, owner, want, info.Mode())
		}
	}
	if err := Directory(filepath.Join(home, "kept")); err != nil {
		t.Errorf("one that is there: %v", err)
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
	if os.Geteuid() == 0 {
		if err := os.Lchown(link, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		if err := Directory(link); err == nil {
			t.Error("a link of another user is followed")
		}
	}
}

// TestFilesOfSudo: what root writes for who called sudo is theirs in their own directories and in those of everybody,
// and can be overwritten again. Elsewhere it is root's.
func TestFilesOfSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const user, group, other = 4321, 4322, 4323
	for name, c := range map[string]struct {
		owner    int
		mode     os.FileMode
		uid, gid string // as sudo sets them
		want     int
	}{
		"a directory of theirs":  {user, 0o700, "4321", "4322", user},
		"of everybody":           {0, 0o777 | os.ModeSticky, "4321", "4322", user},
		"of root":                {0, 0o755, "4321", "4322", 0},
		"of another user":        {other, 0o700, "4321", "4322", 0},
		"root by sudo":           {0, 0o777 | os.ModeSticky, "0", "0", 0},
		"without sudo":           {user, 0o700, "", "", 0},
		"a name that is no user": {user, 0o700, "-1", "4322", 0},
		"a group that is none":   {user, 0o700, "4321", "x", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", c.uid)
			t.Setenv("SUDO_GID", c.gid)
			dir := t.TempDir()
			if err := errors.Join(os.Chown(dir, c.owner, group), os.Chmod(dir, c.mode)); err != nil {
				t.Fatal(err)
			}
			for name, open := range map[string]func(string) (*os.File, error){"new": Create, "over": Overwrite} {
				path := filepath.Join(dir, name)
				f, err := open(path)
				if err != nil {
					t.Fatal(err)
				}
				f.Close()
				info, err := os.Stat(path)
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Fatalf("%v, %v", info, err)
				}
				st := info.Sys().(*syscall.Stat_t)
				if int(st.Uid) != c.want || c.want != 0 && st.Gid != group {
					t.Errorf("%s belongs to %d:%d, want %d", name, st.Uid, st.Gid, c.want)
				}
			}
			f, err := Overwrite(filepath.Join(dir, "over"))
			if err != nil {
				t.Fatalf("once more: %v", err)
			}
			f.Close()
		})
	}
}
