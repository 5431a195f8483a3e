package clients

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsInGoAreClean runs go vet, since go vet of the main module ignores them.
func TestProgramsInGoAreClean(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Language != "Go" {
			continue
		}
		t.Run(string(c.Name), func(t *testing.T) {
			p := program(t, c.Name)
			dir := filepath.Dir(p.Argv[0])
			found, err := c.recipe.find(t.Context())
			if err == nil {
				err = run(t.Context(), dir, goEnv, found["go"], "vet", "./...")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVersionsAreThoseOfTheLockFiles: the versions of the catalogue are those that are built.
func TestVersionsAreThoseOfTheLockFiles(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Name == PyAsync {
			continue // the version of Debian's package
		}
		s, err := c.recipe.source(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		pinned := false
		for _, file := range []string{"go.mod", string(c.Name) + "-requirements.txt", "package-lock.json", "pom.xml"} {
			pinned = pinned || strings.Contains(string(s[file]), c.Version)
		}
		if !pinned {
			t.Errorf("%s: no file pins %s", c.Name, c.Version)
		}
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range Catalogue() {
		if client.Language == "Python" {
			continue // is also searched in /usr/bin
		}
		_, err := c.Get(t.Context(), client.Name, nil)
		if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "https://go.dev/dl/") &&
			!strings.Contains(err.Error(), "apt-get install") {
			t.Error(err)
		}
		if tool := client.Tool(t.Context()); !errors.Is(tool, ErrTool) || c.Built(client) {
			t.Errorf("%v, built %v", tool, c.Built(client))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestUnknownClients(t *testing.T) {
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "delphi", nil); err == nil || !strings.Contains(err.Error(), "go-redis-v9") {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "./no/such/program", nil); err == nil || !strings.Contains(err.Error(),
		"./no/such/program") {
		t.Error(err)
	}
}

func TestPythonWithoutTheLibrary(t *testing.T) {
	// a shell has no such module either
	_, err := findPython(t.Context(), "redis.asyncio", "apt-get install python3-redis", "no-such-python", "sh")
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-redis") {
		t.Error(err)
	}
}

// TestRegistryErrors: a download that fails is not an error of the program.
func TestRegistryErrors(t *testing.T) {
	if err := download(t.Context(), t.TempDir(), nil, "sh", "-c", "echo no route; exit 1"); !errors.Is(err,
		ErrRegistry) || !strings.Contains(err.Error(), "no route") {
		t.Error(err)
	}
	if err := run(t.Context(), t.TempDir(), nil, "sh", "-c", "exit 1"); err == nil || errors.Is(err, ErrRegistry) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := download(ended, t.TempDir(), nil, "sh", "-c", "sleep 100"); !errors.Is(err, context.Canceled) ||
		errors.Is(err, ErrRegistry) {
		t.Error(err)
	}
}

func TestSourceHash(t *testing.T) {
	a := source{"main.go": []byte("package main"), "go.mod": []byte("module lab")}
	if a.hash() != (source{"go.mod": []byte("module lab"), "main.go": []byte("package main")}).hash() {
		t.Error("the order of the files matters")
	}
	for _, b := range []source{
		{"main.go": []byte("package main")},
		{
			"main.go": []byte("package mai"),
			"go.mod":  []byte("module lab"),
		},
		{"main2.go": []byte("package main"), "go.mod": []byte("module lab")},
	} {
		if a.hash() == b.hash() {
			t.Errorf("%v has the hash of another source", b)
		}
	}
}
