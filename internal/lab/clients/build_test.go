package clients

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionsAreThoseOfTheLockFiles: the versions of the catalogue are those that are built.
func TestVersionsAreThoseOfTheLockFiles(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Version == ofDebian {
			continue
		}
		s, err := c.recipe.source(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		pinned := false
		for _, file := range []string{
			"go.mod", string(c.Name) + "-requirements.txt", "package-lock.json", "pom.xml", "Cargo.toml",
		} {
			pinned = pinned || strings.Contains(string(s[file]), c.Version)
		}
		if !pinned {
			t.Errorf("%s: no file pins %s", c.Name, c.Version)
		}
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	c, err := OpenCache(dir)
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
	}
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range list.Clients {
		if client.Language != "Python" && (client.Missing == "" || client.Built) {
			t.Errorf("%+v", client)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
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
