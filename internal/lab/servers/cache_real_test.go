package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"
)

// fake is a server whose recipe writes a script which answers --version with the given version.
func fake(version string, builds *int) Server {
	return Server{Name: "redis-9.9.9", Product: "redis", Version: "9.9.9", recipes: []recipe{
		func(ctx context.Context, s Server, j job) (manifest, error) {
			*builds++
			script := fmt.Sprintf("#!/bin/sh\necho Redis server v=%s sha=0\n", version)
			return manifest{Program: "redis-server", File: "redis-server"},
				os.WriteFile(filepath.Join(j.dir, "redis-server"), []byte(script), 0o755)
		},
	}}
}

func withCatalogue(t *testing.T, s ...Server) {
	t.Helper()
	old := catalogue
	catalogue = s
	t.Cleanup(func() { catalogue = old })
}

func TestGetBuildsOnceAndRepairs(t *testing.T) {
	needs.Real(t)
	builds := 0
	withCatalogue(t, fake("9.9.9", &builds))
	c := openTemp(t)
	if err := os.MkdirAll(filepath.Join(c.dir, ".tmp-redis-9.9.9-killed", "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	get := func() Binary {
		t.Helper()
		b, err := c.Get(t.Context(), "redis-9.9.9", nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := get()
	get()
	if builds != 1 {
		t.Errorf("built %d times, wanted once", builds)
	}
	if err := os.Remove(b.Path); err != nil {
		t.Fatal(err)
	}
	get()
	if builds != 2 {
		t.Errorf("built %d times, wanted a repair", builds)
	}
	if left := globIn(c.dir, ".tmp-*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGetRefusesAnotherVersion(t *testing.T) {
	needs.Real(t)
	builds := 0
	withCatalogue(t, fake("9.9.10", &builds))
	c := openTemp(t)
	_, err := c.Get(t.Context(), "redis-9.9.9", nil)
	if err == nil || !strings.Contains(err.Error(), "says 9.9.10, wanted 9.9.9") {
		t.Error(err)
	}
	if got := c.Installed(t.Context()); len(got) != 0 {
		t.Errorf("installed: %v", got)
	}
}

func TestGetTriesTheNextRecipe(t *testing.T) {
	needs.Real(t)
	builds := 0
	s := fake("9.9.9", &builds)
	refuse := func(context.Context, Server, job) (manifest, error) { return manifest{}, ErrRegistry }
	s.recipes = append([]recipe{refuse}, s.recipes...)
	withCatalogue(t, s)
	if _, err := openTemp(t).Get(t.Context(), s.Name, nil); err != nil {
		t.Error(err)
	}
}

func TestToolEndsWithItsContext(t *testing.T) {
	needs.Real(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (tool{"sleep", "coreutils"}).run(ctx, t.TempDir(), "600"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestOthersMayExecute: servers of root run as another user, also where root keeps its own files to itself.
func TestOthersMayExecute(t *testing.T) {
	needs.Real(t)
	defer syscall.Umask(syscall.Umask(0o077))
	builds := 0
	withCatalogue(t, fake("9.9.9", &builds))
	b, err := openTemp(t).Get(t.Context(), "redis-9.9.9", nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		b.Dir: 0o755, b.Path: 0o755, filepath.Join(b.Dir, manifestFile): 0o644,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
	from := b.From("/proc/self/fd/3")
	if from.Path != "/proc/self/fd/3/redis-server" || from.Server.Version != b.Server.Version {
		t.Errorf("from another path: %+v", from)
	}
}
