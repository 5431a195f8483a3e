package slowpath_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layers is the order of the packages (docs/architecture.md): a package may import those of lower layers only.

var layers = map[string]int{
	"internal/clock":            0,
	"internal/resp":             0,
	"internal/target":           0,
	"internal/usl":              0,
	"internal/comparison":       0,
	"internal/cluster":          1, // parses replies
	"internal/search":           1,
	"internal/session":          1,
	"internal/recording":        1,
	"internal/load":             3,
	"internal/limit":            0,
	"internal/vitals":           3,
	"internal/account":          2,
	"internal/join":             4,
	"internal/probe":            2,
	"internal/server":           2,
	"internal/host":             2,
	"internal/tap":              2,
	"internal/profile":          2,
	"internal/stacks":           0,
	"internal/symbol":           0,
	"internal/sampler":          1,
	"lab/clients":               0,
	"lab/clients/protocol":      0,
	"internal/workload":         2,
	"internal/trace":            3,
	"internal/topology":         3,
	"internal/figure":           0,
	"internal/refresh":          2,
	"internal/topology/lookout": 2,
	"internal/cause":            4,
	"internal/watch":            4,
	"internal/bench":            4,
	"internal/report":           6,
	"internal/lab/servers":      0,
	"internal/lab/fleettest":    2,
	"internal/lab/fleet":        1,
	"internal/lab/traffic":      1,
	"internal/lab/clients":      1,
	"internal/lab/sink":         0,
	"internal/lab/matrix":       5,
	"internal/lab/incident":     5,
	"internal/lab/grade":        6,
	"cmd/slowpath":              7,
}

// TestImportsGoDown fails when a package imports upwards or sideways.
func TestImportsGoDown(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "_") {
			return filepath.SkipDir // as the go command does: modules of their own (lab/clients)
		}
		if err == nil && path == "examples" {
			return filepath.SkipDir // modules of their own
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		from := filepath.ToSlash(filepath.Dir(path))
		layer, known := layers[from]
		if !known {
			t.Errorf("%s: package %s has no layer; add it to this test and to docs/architecture.md", path, from)
			return nil
		}
		seen[from] = true
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, _ := strconv.Unquote(imp.Path.Value) // the parser has checked it
			to, own := strings.CutPrefix(name, "slowpath/")
			if !own {
				continue
			}
			if l, ok := layers[to]; !ok || l >= layer {
				t.Errorf("%s imports %s: imports may only go down", path, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range layers {
		if !seen[p] {
			t.Errorf("layer of %s, which does not exist", p)
		}
	}
}
