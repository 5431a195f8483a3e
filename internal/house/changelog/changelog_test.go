package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUnreleased: each entry of the repository has the form of changelog/TEMPLATE.md, and that file has it, too.
func TestUnreleased(t *testing.T) {
	t.Chdir("../../..")
	_, problems, err := readEntries(unreleased)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	template, err := os.ReadFile("changelog/TEMPLATE.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse("template.md", string(template)); err != nil {
		t.Errorf("changelog/TEMPLATE.md: %v", err)
	}
}

// TestVersions: CHANGELOG.md has the newest version first, and only headings of Keep a Changelog.
func TestVersions(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	var dates []string
	heading := regexp.MustCompile(`^## \[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)$`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if kind, ok := strings.CutPrefix(line, "### "); ok && !slices.Contains(kinds, kind) {
			t.Errorf("%s is no kind of change", kind)
		}
		if !strings.HasPrefix(line, "## ") {
			continue
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q is no version with its date", line)
			continue
		}
		dates = append(dates, m[1])
	}
	slices.Reverse(dates)
	if len(dates) == 0 || !slices.IsSorted(dates) {
		t.Errorf("the newest version is not the first: %v", dates)
	}
}

// TestParse: what is wrong with an entry.
func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a-b.md", "Fixed: Text\n", ""},
		{"a-b.md", "Added: Text\n\nMore of it.\n\nAnd more.\n", ""},
		{"A_b.md", "Fixed: Text\n", "name"},
		{"a.txt", "Fixed: Text\n", "name"},
		{"a.md", "Text\n", "first line"},
		{"a.md", "Fixed: Text.\n", "full stop"},
		{"a.md", "Broken: Text\n", "is none of"},
		{"a.md", "Fixed: Text\nmore\n", "second line"},
		{"a.md", "Fixed: Text\n\n\n", "nothing follows"},
		{"a.md", "Fixed: Text\n\n- item\n", "list"},
		{"a.md", "Fixed: " + strings.Repeat("x", maxColumns) + "\n", "columns"},
	} {
		_, err := parse(c.name, c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}

// TestRelease: the entries become the newest version, and are no longer there.
func TestRelease(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(unreleased, 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("word ", 23) + "and"
	for name, text := range map[string]string{
		changelogFile:            "# Changelog\n\nText.\n\n## [0.1.0] - 2026-11-22\n\n### Added\n- All.\n",
		unreleased + "/b.md":     "Fixed: B\n\n" + long + "\nmore.\n",
		unreleased + "/a.md":     "Fixed: A\n",
		unreleased + "/added.md": "Added: C\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, args := range [][]string{{}, {"0.2.0"}} {
		if err := run(args, now); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(changelogFile)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Changelog\n\nText.\n\n## [0.2.0] - 2026-12-01\n\n### Added\n- C.\n\n### Fixed\n- A.\n- B. " +
		strings.Repeat("word ", 22) + "word\n  and more.\n\n## [0.1.0] - 2026-11-22\n\n### Added\n- All.\n"
	if string(got) != want {
		t.Errorf("CHANGELOG.md is\n%s\nwant\n%s", got, want)
	}
	if err := run([]string{"0.3.0"}, now); err == nil {
		t.Error("a version without changes is made")
	}
}
