package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/recording/series"
)

// TestSeries: each series is declared once, is written or read outside of its package, and docs/recording.md has it
// and its unit. Fields of INFO are the server's, and are documented there.
func TestSeries(t *testing.T) {
	used := usedSeries(t)
	first := map[series.Name]string{}
	for ident, s := range declaredSeries(t) {
		key := s
		key.Unit = ""
		if other := first[key]; other != "" {
			t.Errorf("%s and %s are both %q of %s about %q", ident, other, s.Name, s.Source, s.Subject)
		}
		first[key] = ident
		if !used[ident] {
			t.Errorf("nothing uses series.%s", ident)
		}
		if unit, ok := unitInName(s.Name); ok && unit != s.Unit {
			t.Errorf("the unit of %s is %q, its name is %q", ident, s.Unit, s.Name)
		}
		if s.Source != series.SourceServer || strings.HasPrefix(s.Name, "self.") {
			checkDocumented(t, s)
		}
	}
	if len(first) == 0 {
		t.Error("no series are declared")
	}
}

func unitInName(name string) (series.Unit, bool) {
	for suffix, unit := range map[string]series.Unit{
		"_bytes": series.Bytes, "_share": series.Share, "_seconds": series.Seconds,
		"_milliseconds": series.Milliseconds, "usec": series.Microseconds, "_us": series.Microseconds,
		"_ns": series.Nanoseconds,
	} {
		if strings.HasSuffix(name, suffix) {
			return unit, true
		}
	}
	return "", false
}

var (
	// inRecordingDocument are the names of series in docs/recording.md, and the note after some.
	inRecordingDocument = regexp.MustCompile("`([^`]+)`(?:\\s\\(([^)]*)\\))?")
	// varies is what stands for a part of a name there.
	varies = regexp.MustCompile(`\b(NAME|N|COMMAND)\b`)
)

// checkDocumented wants a series in the paragraph of its source and subject, and its unit there where the name does not
// have it.
func checkDocumented(t *testing.T, s series.Name) {
	t.Helper()
	subject := "`" + s.Subject
	if s.Subject == "" {
		subject = "node:"
	}
	found, unit := false, s.Unit == series.Count
	if _, inName := unitInName(s.Name); inName {
		unit = true
	}
	for paragraph := range strings.SplitSeq(read(t, "docs/recording.md"), "\n- ") {
		paragraph, _, _ = strings.Cut(paragraph, "\n\n")
		rest, ofSource := strings.CutPrefix(paragraph, "`"+s.Source+"`, ")
		head, _, _ := strings.Cut(rest, "\n")
		if !ofSource || !strings.Contains(head, subject) {
			continue
		}
		for _, m := range inRecordingDocument.FindAllStringSubmatch(paragraph, -1) {
			name := varies.ReplaceAllString(m[1], "*")
			documented, _ := path.Match(name, s.Name)
			pattern, _ := path.Match(s.Name, name)
			if documented || pattern {
				found = true
				unit = unit || strings.HasPrefix(m[2], string(s.Unit))
			}
		}
	}
	if !found || !unit {
		t.Errorf("docs/recording.md: `%s`, %s lacks `%s` or its unit (%q)", s.Source, subject, s.Name, s.Unit)
	}
}

// usedSeries are the identifiers of the package that other code than tests uses.
func usedSeries(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	use := regexp.MustCompile(`\b(?:series|recorded)\.([A-Z]\w+)`)
	// Each expression begins with a text, which is looked for first: one of both takes seconds.
	composed := regexp.MustCompile(`series\.Name\{"`)
	named := regexp.MustCompile(`\.Series\([^()]*"\)`)
	err := walkSources(func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		for line := range bytes.Lines(text) { // the expressions take a while, and few lines have what they look for
			if !bytes.Contains(line, []byte("series.")) && !bytes.Contains(line, []byte("recorded.")) {
				continue
			}
			for _, m := range use.FindAllSubmatch(line, -1) {
				used[string(m[1])] = true
			}
		}
		for _, literal := range []*regexp.Regexp{composed, named} {
			if m := literal.Find(text); m != nil {
				t.Errorf("%s: %s… names a series that internal/recording/series does not declare", path, m)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// declaredSeries are the series that the package declares, by identifier. What varies in a name is "*".
func declaredSeries(t *testing.T) map[string]series.Name {
	t.Helper()
	files, err := filepath.Glob("internal/recording/series/*.go")
	if err != nil {
		t.Fatal(err)
	}
	d := declarations{consts: map[string]string{}, funcs: map[string]*ast.FuncDecl{}}
	vars := map[string]ast.Expr{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if r := decl.Type.Results; decl.Recv == nil && r != nil && isName(r.List[0].Type) {
					d.funcs[decl.Name.Name] = decl
				}
			case *ast.GenDecl:
				d.add(decl, vars)
			}
		}
	}
	out := map[string]series.Name{}
	for ident, value := range vars {
		out[ident] = d.name(value, nil)
	}
	for ident, f := range d.funcs {
		if f.Name.IsExported() {
			out[ident] = d.name(&ast.CallExpr{Fun: f.Name}, nil)
		}
	}
	return out
}

func isName(typ ast.Expr) bool {
	ident, ok := typ.(*ast.Ident)
	return ok && ident.Name == "Name"
}

// declarations evaluates declarations of series: composite literals, and calls of functions that return one.
type declarations struct {
	consts map[string]string
	funcs  map[string]*ast.FuncDecl
}

func (d declarations) add(decl *ast.GenDecl, vars map[string]ast.Expr) {
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		for i := 0; ok && i < len(v.Values); i++ {
			if decl.Tok == token.VAR {
				vars[v.Names[i].Name] = v.Values[i]
			} else {
				d.consts[v.Names[i].Name] = d.text(v.Values[i], nil)
			}
		}
	}
}

// name evaluates an expression where parameters have values.
func (d declarations) name(e ast.Expr, params map[string]string) series.Name {
	if c, ok := e.(*ast.CompositeLit); ok {
		return series.Name{
			Source: d.text(c.Elts[0], params), Subject: d.text(c.Elts[1], params),
			Name: d.text(c.Elts[2], params), Unit: series.Unit(d.text(c.Elts[3], params)),
		}
	}
	call := e.(*ast.CallExpr)
	f := d.funcs[call.Fun.(*ast.Ident).Name]
	values, i := map[string]string{}, 0
	for _, field := range f.Type.Params.List {
		for _, param := range field.Names {
			values[param.Name] = "*"
			if i < len(call.Args) {
				values[param.Name] = d.text(call.Args[i], params)
			}
			i++
		}
	}
	return d.name(f.Body.List[0].(*ast.ReturnStmt).Results[0], values)
}

func (d declarations) text(e ast.Expr, params map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return d.text(e.X, params) + d.text(e.Y, params)
	case *ast.Ident:
		if value, ok := params[e.Name]; ok {
			return value
		}
		return d.consts[e.Name]
	}
	return ""
}
