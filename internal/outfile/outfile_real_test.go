package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"slowpath/internal/house/needs"
)

// TestOthers: root writes into no file of another user, and follows no link of theirs to a directory.
func TestOthers(t *testing.T) {
	needs.Real(t, needs.Root)
	const other = 4321
	dir := t.TempDir()
	theirs, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "link")
	err := errors.Join(os.WriteFile(theirs, []byte("kept"), 0o644), os.Chown(theirs, other, other),
		os.Symlink(t.TempDir(), link), os.Lchown(link, other, other))
	if err != nil {
		t.Fatal(err)
	}
	for what, open := range map[string]func(string) (*os.File, error){"Create": Create, "Overwrite": Overwrite} {
		if f, err := open(theirs); err == nil {
			f.Close()
			t.Errorf("%s gives a file", what)
		}
	}
	if body, err := os.ReadFile(theirs); err != nil || string(body) != "kept" {
		t.Errorf("it holds %q, %v", body, err)
	}
	if err := Directory(link); err == nil {
		t.Error("a link of another user is followed")
	}
}

// TestDirectoryOfCaller: a directory that root makes for somebody who called sudo is theirs where they could have made
// it, and root's elsewhere.
func TestDirectoryOfCaller(t *testing.T) {
	needs.Real(t, needs.Root)
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

// TestFilesOfSudo: what root writes for who called sudo is theirs in their own directories and in those of everybody,
// and can be overwritten again. Elsewhere it is root's.
func TestFilesOfSudo(t *testing.T) {
	needs.Real(t, needs.Root)
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
