package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostNames is the most exported names of a package of facts: of the package itself, and methods of a node or a case.
const mostNames = 89

// TestRoomsOfFacts fails when a package of facts has become too big to be known by heart.
func TestRoomsOfFacts(t *testing.T) {
	files, err := filepath.Glob("internal/diagnose/facts/*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("internal/diagnose/facts/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, path := range append(files, below...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			names[filepath.Dir(path)] += exportedNames(d)
		}
	}
	if len(names) != 6 {
		t.Errorf("read %d packages: %v", len(names), names)
	}
	for room, n := range names {
		if n > mostNames {
			t.Errorf("%s has %d exported names, want at most %d: move files to another room, or names into a cause",
				room, n, mostNames)
		}
	}
}

// exportedNames counts those that a declaration has.
func exportedNames(d ast.Decl) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || isNodeOrCase(d.Recv.List[0].Type) {
			count(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				count(s.Name)
			case *ast.ValueSpec:
				count(s.Names...)
			}
		}
	}
	return n
}

func isNodeOrCase(e ast.Expr) bool {
	star, ok := e.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && (name.Name == "Node" || name.Name == "Case")
}
