package cause_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
)

// layers are those that a cause can be of, from the host to the clients.
var layers = []string{"server-host", "server", "persistence", "limits", "network", "client-host", "client"}

// TestCatalogue: ids are stable and unique, and nothing that a reader or a script needs is missing.
func TestCatalogue(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, c := range cause.Catalogue() {
		if !id.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("%q is no id, or there twice", c.ID)
		}
		seen[c.ID] = true
		if c.Title == "" || strings.HasSuffix(c.Title, ".") {
			t.Errorf("%s: the title %q is no sentence without its full stop", c.ID, c.Title)
		}
		if !slices.Contains(layers, c.Layer) {
			t.Errorf("%s: %q is no layer of %v", c.ID, c.Layer, layers)
		}
		if c.Explain == nil || c.Needs == (cause.Needs{}) {
			t.Errorf("%s: it has no predicate, or does not say what it needs", c.ID)
		}
	}
}

// TestCauseTexts: of each cause everything is there that slowpath explain prints, and no part is that of another.
func TestCauseTexts(t *testing.T) {
	ids, owner := map[string]bool{}, map[string]string{}
	for _, c := range cause.Catalogue() {
		ids[c.ID] = true
	}
	own := func(id, text string) {
		if other, is := owner[text]; is {
			t.Errorf("%s has a text of %s: %s", id, other, text)
		}
		owner[text] = id
	}
	for _, c := range cause.Catalogue() {
		for _, text := range []string{c.Mechanism, c.Remedy} {
			own(c.ID, text)
			if !strings.HasSuffix(text, ".") || len(text) < 40 {
				t.Errorf("%s: %q is no sentence", c.ID, text)
			}
		}
		own(c.ID, c.RuledOut)
		if len(c.RuledOut) < 20 || strings.HasSuffix(c.RuledOut, ".") {
			t.Errorf("%s: %q does not say what rules it out, or ends in a full stop", c.ID, c.RuledOut)
		}
		if len(c.LookAlikes) == 0 {
			t.Errorf("%s: no cause looks like it", c.ID)
		}
		for i, l := range c.LookAlikes {
			twice := slices.ContainsFunc(c.LookAlikes[:i], func(o cause.LookAlike) bool { return o.ID == l.ID })
			if !ids[l.ID] || l.ID == c.ID || twice {
				t.Errorf("%s looks like %q, which is no other cause, or there twice", c.ID, l.ID)
			}
			if len(l.How) < 20 {
				t.Errorf("%s: %q does not say how it differs from %s", c.ID, l.How, l.ID)
			}
		}
		if len(c.See) == 0 {
			t.Errorf("%s: no sources", c.ID)
		}
		for _, page := range c.See {
			if u, err := url.Parse(page); err != nil || u.Scheme != "https" || u.Host == "" {
				t.Errorf("%s: %q is no page", c.ID, page)
			}
		}
	}
}

// TestOptionsListed: the topics of libraries that the file of a cause reads are those of its declaration.
func TestOptionsListed(t *testing.T) {
	topic := regexp.MustCompile(`\bremedy\.(?:For|Of)\((?:n, )?remedy\.(\w+)`)
	for _, c := range cause.Catalogue() {
		file := strings.ReplaceAll(c.ID, "-", "_") + ".go"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		_, listed, _ := strings.Cut(string(text), "Options: []remedy.Topic{")
		listed, _, _ = strings.Cut(listed, "}")
		for _, m := range topic.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(listed, "remedy."+m[1]) {
				t.Errorf("%s uses remedy.%s, which its Options lack", file, m[1])
			}
		}
	}
}

// TestAfter: what a cause can be a consequence of exists, and no cause is, over others, a consequence of itself.
func TestAfter(t *testing.T) {
	after := map[string][]string{}
	for _, c := range cause.Catalogue() {
		after[c.ID] = c.Roots()
	}
	var walk func(id string, path []string)
	walk = func(id string, path []string) {
		if slices.Contains(path, id) {
			t.Errorf("a circle: %s", strings.Join(append(path, id), " after "))
			return
		}
		for _, root := range after[id] {
			if _, is := after[root]; !is {
				t.Errorf("%s comes after %s, which does not exist", id, root)
				continue
			}
			walk(root, append(slices.Clone(path), id))
		}
	}
	for id := range after {
		walk(id, nil)
	}
}

// TestCausesDoNotKnowEachOther: the file of a cause uses nothing that the file of another declares, and names no other
// cause but as data: in After, and in what its finding is independent of. What several causes read is a fact, what
// several say is in a file of no cause.
func TestCausesDoNotKnowEachOther(t *testing.T) {
	type source struct {
		name  string
		file  *ast.File
		cause bool
	}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var sources []source
	declares := map[string]string{} // identifier → the file of a cause that declares it
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := source{name: path, file: f, cause: declaresCause(f)}
		sources = append(sources, s)
		if s.cause {
			for _, name := range declared(f) {
				declares[name] = path
			}
		}
	}
	var ids []string
	for _, c := range cause.Catalogue() {
		ids = append(ids, c.ID)
	}
	causes := 0
	for _, s := range sources {
		own := strings.ReplaceAll(strings.TrimSuffix(s.name, ".go"), "_", "-")
		if s.name == "catalogue.go" {
			continue // it lists them
		}
		if s.cause {
			causes++
		}
		for _, name := range used(s.file) {
			if owner, is := declares[name]; is && owner != s.name {
				t.Errorf("%s uses %s of %s", s.name, name, owner)
			}
		}
		for _, id := range namesInCode(s.file) {
			if id != own && slices.Contains(ids, id) {
				t.Errorf("%s names %s outside of its declaration and of IndependentOf", s.name, id)
			}
		}
	}
	if causes != len(ids) {
		t.Errorf("%d files of causes, %d causes: each has a file of its own", causes, len(ids))
	}
}

// declaresCause reports whether a file has a variable that is a Cause.
func declaresCause(f *ast.File) (is bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.CompositeLit); ok {
				name, ok := lit.Type.(*ast.Ident)
				is = is || ok && name.Name == "Cause"
			}
		}
		return !is
	})
	return is
}

// declared are the identifiers of a file's top level: functions, types, variables, constants, and with a dot before
// them methods of Finding. Methods of the file's own types go with those.
func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv == nil:
				names = append(names, d.Name.Name)
			case receiver(d) == "Finding":
				names = append(names, "."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}

// used are the identifiers that a file takes from other files of its package: those that its own scopes do not resolve,
// and with a dot before them the methods that it calls.
func used(f *ast.File) (names []string) {
	for _, id := range f.Unresolved {
		names = append(names, id.Name)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			names = append(names, "."+sel.Sel.Name)
		}
		return true
	})
	return names
}

// namesInCode are the string constants of a file, but for those of declarations of causes and of IndependentOf.
func namesInCode(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name, ok := n.Type.(*ast.Ident); ok && name.Name == "Cause" {
				return false
			}
		case *ast.AssignStmt:
			if sel, ok := n.Lhs[0].(*ast.SelectorExpr); ok && sel.Sel.Name == "IndependentOf" {
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if text, err := strconv.Unquote(n.Value); err == nil {
					names = append(names, text)
				}
			}
		}
		return true
	})
	return names
}
