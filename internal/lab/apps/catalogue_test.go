package apps

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestVersionsAreThoseOfTheLockFiles: the versions of the catalogue are those that are built.
func TestVersionsAreThoseOfTheLockFiles(t *testing.T) {
	version := regexp.MustCompile(`^(\S+) (\d\S*)$`)
	for _, a := range Catalogue() {
		s, err := a.source()
		if err != nil {
			t.Fatal(err)
		}
		var locks strings.Builder
		for name, body := range s {
			if regexp.MustCompile(`^(go\.mod|requirements\.txt|package-lock\.json|Cargo\.lock|pom\.xml)$`).MatchString(name) {
				locks.Write(body)
			}
		}
		for _, library := range strings.Split(a.Libraries, ", ") {
			m := version.FindStringSubmatch(library)
			switch {
			case m == nil && !strings.HasSuffix(a.Libraries, "(Debian)"):
				t.Errorf("%s: %s has no version", a.Name, library)
			case m != nil && !strings.Contains(locks.String(), m[2]) && !ofSpringBoot(m[1]):
				t.Errorf("%s: no file pins %s", a.Name, library)
			}
		}
	}
}

// ofSpringBoot reports whether the version of Spring Boot determines that of a library.
func ofSpringBoot(library string) bool { return library == "spring-session" || library == "lettuce" }

// TestDocument: docs/apps.md has a row for each application, with what the catalogue says.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/apps.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Catalogue() {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(string(a.Name)) + "` \\|.*$").FindString(string(text))
		twemproxy, tls := "no", "no"
		if a.Twemproxy {
			twemproxy = "yes"
		}
		if a.TLS {
			tls = "yes"
		}
		for _, part := range []string{
			a.Title, a.Language, a.Libraries, a.Commands, "| " + twemproxy + " | " + tls + " |",
		} {
			if !strings.Contains(row, part) {
				t.Errorf("%s: no %q in the row %q", a.Name, part, row)
			}
		}
	}
}

func TestCatalogueIsComplete(t *testing.T) {
	seen := map[Name]bool{}
	for _, a := range Catalogue() {
		if seen[a.Name] || a.Title == "" || a.Rate <= 0 || a.Rate > 1000 || a.recipe.argvs == nil {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
	}
	if _, err := Lookup("minecraft"); err == nil || !strings.Contains(err.Error(), "celery") {
		t.Error(err)
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Catalogue() {
		if a.Language == "Python" {
			continue // is also searched in /usr/bin
		}
		_, err := c.Get(t.Context(), a.Name, nil)
		if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install") &&
			!strings.Contains(err.Error(), "https://go.dev/dl/") {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Apps {
		if a.Language != "Python" && (a.Built || a.Missing == "") {
			t.Errorf("%s is built without a tool", a.Name)
		}
	}
}
