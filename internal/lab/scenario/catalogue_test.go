package scenario

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range Catalogue() {
		if i.ID == "" || i.Cause == "" || i.Title == "" || i.Make == nil {
			t.Errorf("%q is not complete", i.ID)
		}
		if strings.Contains(i.Title, "\n") || len(i.Title) > 100 {
			t.Errorf("the title of %s does not fit on a line: %s", i.ID, i.Title)
		}
		if seen[i.ID] {
			t.Errorf("%q is there twice", i.ID)
		}
		seen[i.ID] = true
	}
}

// TestFilesAreNamedAfterScenarios: a scenario is in the file of its id, or one of which it is a variant. The names of
// other files begin with lab.
func TestFilesAreNamedAfterScenarios(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`\bID: +"([^"]*)"`)
	for _, f := range files {
		name, isGo := strings.CutSuffix(f.Name(), ".go")
		if !isGo || strings.HasPrefix(name, "lab") || strings.HasSuffix(name, "_test") || name == "scenario" ||
			name == "catalogue" {
			continue
		}
		body, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		of := strings.ReplaceAll(name, "_", "-")
		if _, ok := Find(of); !ok {
			t.Errorf("%s is not named after a scenario", f.Name())
		}
		for _, id := range ids.FindAllStringSubmatch(string(body), -1) {
			if id[1] != of && !strings.HasPrefix(id[1], of+"-") {
				t.Errorf("%s has the scenario %s", f.Name(), id[1])
			}
		}
	}
}

// TestClientScenarios: each is named after its cause, with what it varies behind it.
func TestClientScenarios(t *testing.T) {
	for _, sc := range clientScenarios {
		if sc.ID != sc.Cause && !strings.HasPrefix(sc.ID, sc.Cause+"-") {
			t.Errorf("scenario %q is of %q", sc.ID, sc.Cause)
		}
	}
}
