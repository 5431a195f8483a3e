package house

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/recording"
)

var update = flag.Bool("update", false, "write the generated documents again")

// TestCausesDocument: docs/causes.md is made of cause.Catalogue, and what slowpath knows of the lab's scenarios of
// their catalogue.
func TestCausesDocument(t *testing.T) {
	generated(t, "internal/report/scenarios.tsv", scenariosTable(scenario.Catalogue()))
	generated(t, "docs/causes.md", causesDocument(cause.Catalogue()))
}

// generated compares a file with what it is made of, or writes it.
func generated(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the catalogues make (%v): run make docs", file, err)
	}
}

func scenariosTable(all []scenario.Scenario) []byte {
	var b bytes.Buffer
	for _, in := range all {
		if in.Cause != scenario.HealthyCause {
			fmt.Fprintf(&b, "%s\t%s\n", in.Cause, in.ID)
		}
	}
	return b.Bytes()
}

func causesDocument(all []cause.Cause) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Causes

Made from `+"`cause.Catalogue()`"+` by `+"`make docs`"+`; do not edit. The ids are stable: scripts match on them.

%d causes. Each links to what is known of it: how it makes calls slow, what rules it out, which causes look like it, what
ends it, and the sources. `+"`slowpath explain ID`"+` prints that, too. *Seen with* is the least evidence that shows it:
T0 a connection alone, T1 the host's files too, T2 the tap too.
There are also the verdicts `+"`healthy`"+` (no call failed, and none was slow, or too few to call it a pattern)
and `+"`inconclusive`"+` (calls were slow or failed, and nothing that was seen explains them).

| id | title | layer | seen with |
|---|---|---|---|
`, len(all))
	for _, c := range all {
		file := "../internal/diagnose/cause/" + strings.ReplaceAll(c.ID, "-", "_") + ".md"
		seen := "T2"
		switch {
		case c.Needs.T0 != "":
			seen = "T0"
		case c.Needs.T1 != "":
			seen = "T1"
		}
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>[`%s`](%s) | %s | %s | %s |\n", c.ID, c.ID, file, cell(c.Title), c.Layer, seen)
	}
	return b.Bytes()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// TestArchitectureTable: the table of docs/architecture.md has the packages and layers of imports_test.go.
func TestArchitectureTable(t *testing.T) {
	want := layersOf(t, "internal/house/imports_test.go")
	got := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\d+) \\|").FindAllStringSubmatch(read(t,
		"docs/architecture.md"), -1) {
		got[m[1]], _ = strconv.Atoi(m[2]) // digits
	}
	for p, layer := range want {
		if l, ok := got[p]; !ok || l != layer {
			t.Errorf("docs/architecture.md has %s in layer %d (%v), imports_test.go in layer %d", p, l, ok, layer)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("docs/architecture.md has %s, imports_test.go has not", p)
		}
	}
}

// layersOf reads the map literal "layers" of a Go file.
func layersOf(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "layers" || len(v.Values) != 1 {
			return true
		}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			kv := e.(*ast.KeyValueExpr)
			name, _ := strconv.Unquote(kv.Key.(*ast.BasicLit).Value)
			out[name], _ = strconv.Atoi(kv.Value.(*ast.BasicLit).Value)
		}
		return false
	})
	if len(out) == 0 {
		t.Fatalf("%s has no map named layers", file)
	}
	return out
}

// TestPathsExist: documents link to files that exist, and comments name documents that exist.
func TestPathsExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]+)[^)\s]*\)`)
	document := regexp.MustCompile(`\b(?:site/)?docs/[\w/.-]+\.md\b`)
	err := walkSources(func(path string, text []byte) {
		var named []string
		for _, m := range link.FindAllSubmatch(text, -1) {
			if filepath.Ext(path) == ".md" && !bytes.Contains(m[1], []byte("://")) {
				named = append(named, filepath.Join(filepath.Dir(path), string(m[1])))
			}
		}
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("docs/")) { // the expressions take a while
				continue
			}
			for _, m := range document.FindAll(address.ReplaceAll(line, nil), -1) {
				named = append(named, string(m))
			}
		}
		for _, n := range named {
			if _, err := os.Stat(n); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordingDocument: docs/recording.md has every table, column and name of the format.
func TestRecordingDocument(t *testing.T) {
	text := read(t, "docs/recording.md")
	path := filepath.Join(t.TempDir(), "empty.slowpath")
	w, err := recording.Create(path, 0)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	for _, row := range query(t, db, "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE "+
		"m.type = 'table'") {
		table, column := row[0], row[1]
		_, section, ok := strings.Cut(text, "### `"+table+"`")
		section, _, _ = strings.Cut(section, "\n### ")
		if !ok || !strings.Contains(section, "`"+column+"`") {
			t.Errorf("docs/recording.md does not document %s.%s", table, column)
		}
	}
	files, err := filepath.Glob("internal/recording/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "internal/source/server/doc.go") {
		for name, value := range stringConstants(t, file) {
			if isStateOfNoSource(name) || strings.Contains(text, "`"+value) || strings.Contains(text, value+"`") {
				continue
			}
			t.Errorf("docs/recording.md does not name %q (%s in %s)", value, name, file)
		}
	}
}

// isStateOfNoSource: states that the account makes of events, so that no recording holds them as such.
func isStateOfNoSource(name string) bool {
	switch name {
	case "Out", "Back", "Retransmit", "Exec", "Unexplained", "Nobody":
		return true
	}
	return false
}

// stringConstants gives the exported string constants of a Go file by name.
func stringConstants(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range v.Values {
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING && v.Names[i].IsExported() {
				out[v.Names[i].Name], _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	return out
}

func sectionOf(text, heading string) string {
	_, section, _ := strings.Cut(text, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// query gives all rows as text.
func query(t *testing.T, db *sql.DB, q string) [][]string {
	t.Helper()
	rows, err := db.Query(q)
	if err != nil {
		t.Fatalf("%v: %s", err, q)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		row, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(row))
		for i := range row {
			text[i] = row[i].String
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
