package servers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

func TestGetEveryServer(t *testing.T) {
	c := openDefault(t)
	for _, name := range Known() {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			b, err := c.Get(t.Context(), name, t.Output())
			if errors.Is(err, ErrRegistry) || errors.Is(err, ErrTool) {
				t.Skipf("skipped: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.Path, string(filepath.Separator)+".tmp-") {
				t.Errorf("Path %s is the temporary directory", b.Path)
			}
			if base := filepath.Base(b.Path); base != "redis-server" && base != "valkey-server" {
				t.Errorf("the process would be called %s", base)
			}
			out, err := b.Command("--version").Output()
			if err != nil || !strings.Contains(string(out), "v="+b.Version+" ") {
				t.Errorf("--version: %q, %v", out, err)
			}
			if again, err := c.Get(t.Context(), name, nil); err != nil || again.Path != b.Path {
				t.Errorf("the second Get: %v, %v", again, err)
			}
			if !slices.ContainsFunc(c.Installed(t.Context()), func(i Binary) bool { return i.Name == name }) {
				t.Error("not among the installed")
			}
		})
	}
}

func TestLookup(t *testing.T) {
	if len(Known()) != 6 {
		t.Errorf("Known() = %v", Known())
	}
	for _, name := range Known() {
		if s, err := Lookup(name); err != nil || string(s.Name) != s.Product+"-"+s.Version {
			t.Errorf("Lookup(%s) = %v, %v", name, s, err)
		}
	}
	if _, err := Lookup("redis-1.0"); err == nil || !strings.Contains(err.Error(), "valkey-8.1.1") {
		t.Errorf("Lookup of an unknown name: %v", err)
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c := openTemp(t)
	for name, want := range map[Name]string{
		Redis506: "apt-get install gcc", Redis6016: "apt-get install apt", Redis6214: "apt-get install python3-pip",
		Redis7015: "apt-get install apt", Redis802: "apt-get install apt", Valkey811: "apt-get install apt",
	} {
		_, err := c.Get(t.Context(), name, nil)
		if err == nil || !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, wanted %q", name, err, want)
		}
	}
	if left := globIn(c.dir, ".tmp-*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPipMissingSaysWhatToInstall(t *testing.T) {
	fakeTool(t, "python3", "echo '/usr/bin/python3: No module named pip' >&2; exit 1")
	_, err := openTemp(t).Get(t.Context(), Redis6214, nil)
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-pip") {
		t.Error(err)
	}
}

func TestRegistryRefusal(t *testing.T) {
	fakeTool(t, "python3", `case "$*" in *version) exit 0;; esac; echo 'ERROR: No matching distribution found'; exit 1`)
	_, err := openTemp(t).Get(t.Context(), Redis6214, nil)
	if !errors.Is(err, ErrRegistry) || !strings.Contains(err.Error(), "No matching distribution") {
		t.Error(err)
	}
}

func openTemp(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
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
