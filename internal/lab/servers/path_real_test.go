package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
)

// program makes a shell script.
func program(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAtPath: each server of the cache that needs no loader of its own is found by its path, and says what it is.
func TestAtPath(t *testing.T) {
	needs.Real(t)
	c := openDefault(t)
	for _, name := range []Name{Redis506, Redis6214, Redis7015} {
		known, err := c.Get(t.Context(), name, t.Output())
		if errors.Is(err, ErrRegistry) || errors.Is(err, ErrTool) {
			t.Skip(err)
		}
		if err != nil || len(known.Lead) > 0 {
			t.Skip(err, known.Lead)
		}
		b, err := AtPath(t.Context(), known.Path, As{})
		if err != nil || b.Name != name || b.Product != "redis" || b.File != known.File {
			t.Errorf("%+v, %v", b, err)
		}
		out, err := b.Command("--version").Output()
		if err != nil || !strings.Contains(string(out), "v="+known.Version+" ") {
			t.Errorf("%s: %q, %v", b.Path, out, err)
		}
	}
}

func TestAtPathOfAnyVersion(t *testing.T) {
	needs.Real(t)
	for text, want := range map[string]Name{
		"Valkey server v=9.0.0-rc1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64": "valkey-9.0.0-rc1",
		"Redis server v=2.8.24 sha=00000000:0 malloc=libc bits=64":               "redis-2.8.24",
	} {
		b, err := AtPath(t.Context(), program(t, "server", "echo '"+text+"'"), As{})
		if err != nil || b.Name != want {
			t.Errorf("%+v, %v", b, err)
		}
	}
}

func TestAtPathRefuses(t *testing.T) {
	needs.Real(t)
	dir, closed := t.TempDir(), program(t, "plain", "")
	if err := os.Chmod(closed, 0o644); err != nil {
		t.Fatal(err)
	}
	installed := t.TempDir()
	inBin := filepath.Join(installed, "bin", "valkey-server")
	if err := os.Mkdir(filepath.Dir(inBin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inBin, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		installed:                        "it is a directory; name the program in it, such as " + inBin,
		dir:                              "it is a directory; name the program in it, such as " + dir + "/redis-server",
		filepath.Join(dir, "none"):       "no such file",
		closed:                           "chmod +x it",
		program(t, "cli", "echo cli 7"):  `"cli 7"; name a redis-server`,
		program(t, "silent", "exit 3"):   "exit status 3",
		program(t, "hangs", "sleep 60"):  "did not end within",
		program(t, "floods", "exec yes"): "did not end within",
		program(t, "redis-check-aof", "echo Redis server v=7.0.0"): `"redis-check-"`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := AtPath(ctx, path, As{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the server "+path) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
