package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLayersOfTests: the name of a file of tests says their layer, each test of the real and long layers begins by
// saying what it needs, and hermetic ones use nothing that is outside. No test sleeps but by await.
func TestLayersOfTests(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.HasPrefix(d.Name(), "_") || path == "examples" || path == "packaging") {
			return filepath.SkipDir // modules of their own
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			checkLayer(t, path, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	realFile = regexp.MustCompile(`_real(_linux)?_test\.go$`)
	longFile = regexp.MustCompile(`_long(_linux)?_test\.go$`)
)

// outside are packages that hermetic tests do not use.
var outside = []string{"os/exec", "slowpath/internal/lab/fleettest", "slowpath/internal/house/needs"}

func checkLayer(t *testing.T, path string, f *ast.File) {
	t.Helper()
	begins := "" // what each test begins with
	tested := strings.TrimSuffix(path, "_test.go") + ".go"
	switch _, err := os.Stat(tested); {
	case err == nil: // what is tested has such a name
	case realFile.MatchString(path):
		begins = "Real"
	case longFile.MatchString(path):
		begins = "Long"
	}
	for _, imp := range f.Imports {
		name, _ := strconv.Unquote(imp.Path.Value) // the parser has checked it
		for _, o := range outside {
			if begins == "" && name == o && !strings.HasPrefix(path, "internal/house/") {
				t.Errorf("%s imports %s: tests that use it are in NAME_real_test.go or NAME_long_test.go", path, name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && isSelector(sel, "time", "Sleep") {
			t.Errorf("%s sleeps: use synctest, or internal/house/await", path)
		}
		return true
	})
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if begins == "" || !ok || !isTest(fn) {
			continue
		}
		if !callsFirst(fn, "needs", begins) {
			t.Errorf("%s: %s does not begin with needs.%s", path, fn.Name.Name, begins)
		}
	}
}

func isTest(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

func isSelector(s *ast.SelectorExpr, pkg, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}

// callsFirst reports whether the first statement of a function is a call of pkg.name.
func callsFirst(fn *ast.FuncDecl, pkg, name string) bool {
	if len(fn.Body.List) == 0 {
		return false
	}
	e, ok := fn.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isSelector(sel, pkg, name)
}
