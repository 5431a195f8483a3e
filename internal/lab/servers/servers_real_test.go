package servers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

// openDefault is the user's cache: the servers are downloaded once per machine, not once per test run.
func openDefault(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPipMissingSaysWhatToInstall(t *testing.T) {
	needs.Real(t)
	fakeTool(t, "python3", "echo '/usr/bin/python3: No module named pip' >&2; exit 1")
	_, err := openTemp(t).Get(t.Context(), Redis6214, nil)
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-pip") {
		t.Error(err)
	}
}

func TestRegistryRefusal(t *testing.T) {
	needs.Real(t)
	fakeTool(t, "python3", `case "$*" in *version) exit 0;; esac; echo 'ERROR: No matching distribution found'; exit 1`)
	_, err := openTemp(t).Get(t.Context(), Redis6214, nil)
	if !errors.Is(err, ErrRegistry) || !strings.Contains(err.Error(), "No matching distribution") {
		t.Error(err)
	}
}

// fakeTool puts a shell script first in PATH.
func fakeTool(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
