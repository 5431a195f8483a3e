package house

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityDocument: each row of the threat table of docs/security.md names a test that exists.
func TestSecurityDocument(t *testing.T) {
	rows := threats(sectionOf(read(t, "docs/security.md"), "Threats"))
	if len(rows) == 0 {
		t.Fatal("docs/security.md has no table of threats")
	}
	for _, p := range threatProblems(rows, testNames(t)) {
		t.Errorf("docs/security.md: %s", p)
	}
}

// threats gives the cells of the rows of a section's tables, without the headings.
func threats(section string) (rows [][]string) {
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| who |") {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		rows = append(rows, cells)
	}
	return rows
}

// testName is a test as a row names it: a function, with its package where the name is not enough, or a script.
var testName = regexp.MustCompile("`((?:\\w+\\.)?(?:Test|Fuzz)\\w+|\\w+\\.txtar)`")

// threatProblems are the rows that name no test, or one that is not in known, which has the packages of each test.
func threatProblems(rows [][]string, known map[string][]string) (problems []string) {
	for _, cells := range rows {
		if len(cells) != 4 || slices.Contains(cells, "") {
			problems = append(problems, "a row has not four cells: "+strings.Join(cells, " | "))
			continue
		}
		named := testName.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			problems = append(problems, "no test is named for: "+cells[0]+" | "+cells[1])
		}
		for _, m := range named {
			pkg, name, qualified := strings.Cut(m[1], ".")
			if !qualified || strings.HasSuffix(m[1], ".txtar") {
				pkg, name = "", m[1]
			}
			switch in := known[name]; {
			case len(in) == 0, pkg != "" && !slices.Contains(in, pkg):
				problems = append(problems, "there is no test "+m[1])
			case pkg == "" && len(in) > 1:
				problems = append(problems, name+" is in several packages: "+strings.Join(in, ", "))
			}
		}
	}
	return problems
}

// testNames gives the packages of all tests and fuzz targets, and of the scripts of TestScripts.
func testNames(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	scripts, err := filepath.Glob("cmd/slowpath*/testdata/*.txtar")
	long, longErr := filepath.Glob("cmd/slowpath*/testdata/long/*.txtar")
	if err = errors.Join(err, longErr); err != nil {
		t.Fatal(err)
	}
	scripts = append(scripts, long...)
	for _, s := range scripts {
		known[filepath.Base(s)] = []string{"main"}
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || slices.Contains(known[fn.Name.Name], pkg) {
				continue
			}
			if strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz") {
				known[fn.Name.Name] = append(known[fn.Name.Name], pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// TestThreatProblems: what is wrong with a row.
func TestThreatProblems(t *testing.T) {
	known := map[string][]string{"TestA": {"a"}, "FuzzB": {"a", "b"}, "c.txtar": {"main"}}
	for row, want := range map[string]string{
		"| a | b | c | `TestA`, `b.FuzzB`, `c.txtar` |": "",
		"| a | b | c | none |":                          "no test is named",
		"| a | b | c |":                                 "not four cells",
		"| a | b | | `TestA` |":                         "not four cells",
		"| a | b | c | `TestGone` |":                    "no test TestGone",
		"| a | b | c | `c.TestA` |":                     "no test c.TestA",
		"| a | b | c | `gone.txtar` |":                  "no test gone.txtar",
		"| a | b | c | `FuzzB` |":                       "several packages",
	} {
		got := strings.Join(threatProblems(threats("| who | what |\n|---|---|\n"+row+"\n"), known), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}
