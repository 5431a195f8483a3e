package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/report"
)

// TestEveryCauseHasAPage: with what is known of it, and a link in the list.
func TestEveryCauseHasAPage(t *testing.T) {
	var causes []report.CauseText
	for _, c := range cause.Catalogue() {
		causes = append(causes, report.TextOf(c))
	}
	const judged = "slow-command"
	verdicts := map[string]verdict{judged: {
		scenario: "slow-command", first: true, causes: []string{judged}, text: "<b> of a *recording*\n",
	}}
	dir := t.TempDir()
	if err := writeCauses(dir, causes, verdicts); err != nil {
		t.Fatal(err)
	}
	list := read(t, filepath.Join(dir, "index.md"))
	for _, c := range causes {
		page := read(t, filepath.Join(dir, c.ID+".md"))
		for _, want := range []string{
			"\n# " + c.ID + "\n", markdown(c.Mechanism), markdown(c.RuledOut), markdown(c.Fix), "\n## A verdict\n",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %s lacks %q", c.ID, want)
			}
		}
		if got := strings.Contains(page, "There is no recording"); got == (c.ID == judged) {
			t.Errorf("the page of %s says that there is no recording: %v", c.ID, got)
		}
		if !strings.Contains(list, "]("+c.ID+".md)") {
			t.Errorf("the list lacks %s", c.ID)
		}
	}
	page := read(t, filepath.Join(dir, judged+".md"))
	if !strings.Contains(page, "<code>&lt;b&gt; of a *recording*</code>") {
		t.Errorf("the verdict is not shown as it is:\n%s", page)
	}
	unknown := report.CauseText{ID: "a", Layer: "of no list"}
	if _, err := causeList([]report.CauseText{unknown}, nil); err == nil {
		t.Error("a cause of an unknown layer is left out silently")
	}
}

// TestLinksOfDocuments: links of the repository become links of the site.
func TestLinksOfDocuments(t *testing.T) {
	for from, c := range map[string]struct{ up, want string }{
		"[a](causes.md#swap)":             {"../", "[a](../causes/swap.md)"},
		"[a](causes.md)":                  {"../", "[a](../causes/index.md)"},
		"[a](../causes.md#swap)":          {"../../", "[a](../../causes/swap.md)"},
		"[a](truth.md#the-tap)":           {"../", "[a](truth.md#the-tap)"},
		"[a](../README.md#tasks)":         {"../", "[a](../start.md)"},
		"[a](../internal/wire/allow.go)":  {"../", "a"},
		"[a](../truth.md)":                {"../../", "[a](../truth.md)"},
		"[a](https://redis.io/../a.md)":   {"../", "[a](https://redis.io/../a.md)"},
		"[a](decisions/0009-tap.md#cost)": {"../", "[a](decisions/0009-tap.md#cost)"},
	} {
		if got := string(relink([]byte(from), c.up)); got != c.want {
			t.Errorf("%s becomes %s, want %s", from, got, c.want)
		}
	}
}

// TestLinksOfPages: pages that were written for the site link to the documents as they are in the repository.
func TestLinksOfPages(t *testing.T) {
	for from, want := range map[string]string{
		"[a](../../docs/tasks.md#b)":     "[a](reference/tasks.md#b)",
		"[a](../../docs/causes.md)":      "[a](causes/index.md)",
		"[a](../../docs/causes.md#swap)": "[a](causes/swap.md)",
		"[a](faq.md)":                    "[a](faq.md)",
	} {
		if got := string(relinkPage([]byte(from))); got != want {
			t.Errorf("%s becomes %s, want %s", from, got, want)
		}
	}
}

// TestNavigation: the pages that the navigation names are there.
func TestNavigation(t *testing.T) {
	navigation := read(t, "../mkdocs.yml")
	_, navigation, found := strings.Cut(navigation, "\nnav:\n")
	if !found {
		t.Fatal("mkdocs.yml has no nav")
	}
	for line := range strings.SplitSeq(navigation, "\n") {
		_, page, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if page == "" || page == "causes/index.md" { // written by writeCauses
			continue
		}
		path := filepath.Join("../docs", page)
		if name, ok := strings.CutPrefix(page, "reference/"); ok {
			path = filepath.Join("../../docs", name)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
