// Package bounds reads the source of the diagnosis, lists the numbers that decide, each with the kind of its reason,
// and finds those that are not declared as CONTRIBUTING.md says.
package bounds

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Packages of the diagnosis that decide, as folders of internal/diagnose: each comes after those that it imports.
var Packages = []string{
	"degree", "account", "facts", "facts/hosts", "facts/caller", "facts/connection", "facts/mainthread", "facts/nodes",
	"changes", "law", "remedy", "cause", "verdict", "compare",
}

// tools are the other folders of internal/diagnose: no verdict hangs on them.
var tools = []string{"bounds", "corpus", "sensitivity"}

// Kinds of reasons, in the order of docs/bounds.md.
var Kinds = []Kind{
	{"guess", "nobody has measured it: the work list"},
	{"noted", "measured once, as the comment says; no command of ours measures it again"},
	{"measured", "measured by the command that the reason names"},
	{"noticed", "what a person or a caller notices"},
	{"statistics", "so many, or so far apart, are unlikely to be chance: the reason says how unlikely"},
	{"majority", "more than half of what the reason names"},
	{"kernel", "a constant of Linux"},
	{"server", "a constant or a default of Redis or Valkey"},
	{"library", "a default of a client library, a language's runtime or the C library"},
	{"slowpath", "follows from how slowpath itself watches: its intervals, its connections, what it records"},
	{"arithmetic", "decides nothing about what is true: a unit, the size of a list, a line of advice, a guard"},
}

// Kind is a kind of reason.
type Kind struct{ Name, Meaning string }

// Bound is a declared number that decides.
type Bound struct {
	Name    string // package.name, or package.function.name
	File    string // from the root, with slashes
	Line    int
	Value   string // as the source has it
	Kind    string
	Meaning string // what it bounds
	Reason  string
	UsedIn  []string // files that name it, as package/file
}

// Problem is a number that has no reason, or one that cannot be read.
type Problem struct {
	File string
	Line int
	Text string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// file is a parsed file.
type file struct {
	path, pkg string
	syntax    *ast.File
}

// reader collects the bounds of a source tree.
type reader struct {
	fset     *token.FileSet
	files    []file
	text     map[string][]byte
	bounds   []Bound
	problems []Problem
}

// Read reads the packages of the diagnosis below root. The bounds are sorted by package, file and line.
func Read(root string) ([]Bound, []Problem, error) {
	if err := allNamed(root); err != nil {
		return nil, nil, err
	}
	r := &reader{fset: token.NewFileSet(), text: map[string][]byte{}}
	for _, pkg := range Packages {
		paths, err := filepath.Glob(filepath.Join(root, "internal/diagnose", pkg, "*.go"))
		if err != nil {
			return nil, nil, err
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, nil, err
			}
			if err := r.add(pkg, "internal/diagnose/"+pkg+"/"+filepath.Base(path), text); err != nil {
				return nil, nil, err
			}
		}
	}
	bounds, problems := r.read()
	return bounds, problems, nil
}

// allNamed fails on a folder of the diagnosis that is neither read nor a tool.
func allNamed(root string) error {
	folders, err := os.ReadDir(filepath.Join(root, "internal/diagnose"))
	if err != nil {
		return err
	}
	for _, f := range folders {
		if f.IsDir() && !slices.Contains(Packages, f.Name()) && !slices.Contains(tools, f.Name()) {
			return fmt.Errorf("internal/diagnose/%s: name it in Packages of internal/diagnose/bounds, or in tools",
				f.Name())
		}
	}
	return nil
}

func (r *reader) add(pkg, path string, text []byte) error {
	f, err := parser.ParseFile(r.fset, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	r.files, r.text[path] = append(r.files, file{path, filepath.Base(pkg), f}), text
	return nil
}

func (r *reader) read() ([]Bound, []Problem) {
	for _, f := range r.files {
		r.declarations(f)
		r.literals(f)
	}
	r.uses()
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r.bounds, r.problems
}

func (r *reader) problem(pos token.Pos, text string, args ...any) {
	p := r.fset.Position(pos)
	r.problems = append(r.problems, Problem{p.Filename, p.Line, fmt.Sprintf(text, args...)})
}

// declarations collects the numeric constants of a file, those of functions too, and package variables that are
// numbers.
func (r *reader) declarations(f file) {
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			r.declaration(f, f.pkg+".", d)
		case *ast.FuncDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				if local, ok := n.(*ast.GenDecl); ok && local.Tok == token.CONST {
					r.declaration(f, f.pkg+"."+d.Name.Name+".", local)
				}
				return true
			})
		}
	}
}

func (r *reader) declaration(f file, prefix string, d *ast.GenDecl) {
	if d.Tok != token.CONST && d.Tok != token.VAR || isEnumeration(d) {
		return
	}
	comment := ""
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		if spec.Doc != nil || spec.Comment != nil || !strings.Contains(comment, mark) {
			comment = comments(d, spec)
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) && isNumber(spec.Values[i]) {
				r.declared(f, prefix+name.Name, name, spec.Values[i], comment)
			}
		}
	}
}

// isEnumeration: the values of iota are names, not numbers.
func isEnumeration(d *ast.GenDecl) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return true
	})
	return found
}

// isNumber: the expression has number literals and nothing but operators, conversions and names around them, or is the
// name of another constant.
func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT || e.Kind == token.FLOAT
	case *ast.ParenExpr:
		return isNumber(e.X)
	case *ast.UnaryExpr:
		return isNumber(e.X)
	case *ast.BinaryExpr:
		return isNumber(e.X) && (isNumber(e.Y) || isName(e.Y)) || isName(e.X) && isNumber(e.Y)
	case *ast.CallExpr:
		return len(e.Args) == 1 && isConversion(e) && (isNumber(e.Args[0]) || isName(e.Args[0]))
	}
	return false
}

func isName(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isName(e.X)
	}
	return false
}

// isConversion: a call of a numeric type.
func isConversion(c *ast.CallExpr) bool {
	return slices.Contains([]string{"int", "int32", "int64", "uint64", "float64", "Duration"}, calledName(c))
}

// comments are those of a constant, or else of its group. A constant without a comment has that of the one before it.
func comments(d *ast.GenDecl, spec *ast.ValueSpec) string {
	own := strings.TrimSpace(spec.Doc.Text() + " " + spec.Comment.Text())
	if !d.Lparen.IsValid() {
		own = strings.TrimSpace(d.Doc.Text() + " " + own)
	}
	group, _, grouped := strings.Cut(d.Doc.Text(), mark)
	switch {
	case !strings.Contains(own, mark) && grouped:
		own += " " + d.Doc.Text()
	case d.Lparen.IsValid() && spec.Doc == nil: // what it is says the comment of its group, too
		own = group + " " + own
	}
	return strings.Join(strings.Fields(own), " ")
}

const mark = "Bound: "

var marked = regexp.MustCompile(`^(.*?)\s*Bound: ([a-z]+)(?:, (.+)|\.)$`)

func (r *reader) declared(f file, name string, id *ast.Ident, value ast.Expr, comment string) {
	m := marked.FindStringSubmatch(comment)
	if m == nil {
		r.problem(id.Pos(), "%s has no reason: end its comment with \"Bound: KIND, reason\", where KIND is %s, or "+
			"with \"Bound: guess.\"", id.Name, kindNames())
		return
	}
	b := Bound{Name: name, Value: r.source(f, value), Kind: m[2], Meaning: m[1], Reason: m[3]}
	p := r.fset.Position(id.Pos())
	b.File, b.Line = p.Filename, p.Line
	switch {
	case !slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == b.Kind }):
		r.problem(id.Pos(), "%s: no kind %q: it is one of %s", id.Name, b.Kind, kindNames())
		return
	case b.Reason == "" && b.Kind != "guess":
		r.problem(id.Pos(), "%s: %s needs a reason behind the kind; without one it is a guess", id.Name, b.Kind)
		return
	}
	r.bounds = append(r.bounds, b)
}

func kindNames() string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// source is an expression as it is written, without a conversion around it.
func (r *reader) source(f file, e ast.Expr) string {
	if c, ok := e.(*ast.CallExpr); ok && len(c.Args) == 1 {
		e = c.Args[0]
	}
	return string(r.text[f.path][r.fset.Position(e.Pos()).Offset:r.fset.Position(e.End()).Offset])
}

// uses finds the files that name a bound, or another name of it: within its package by the name, elsewhere by
// package.name.
func (r *reader) uses() {
	at := map[string]int{}
	for i, b := range r.bounds {
		pkg, name, _ := strings.Cut(b.Name, ".")
		at[pkg+"."+name[strings.LastIndexByte(name, '.')+1:]] = i
	}
	for _, f := range r.files {
		r.otherNames(f, at)
	}
	in := make([]map[string]bool, len(r.bounds))
	for _, f := range r.files {
		eachName(f, func(name string, id *ast.Ident) {
			i, ok := at[name]
			if !ok {
				return
			}
			p := r.fset.Position(id.Pos())
			if p.Filename == r.bounds[i].File && p.Line == r.bounds[i].Line {
				return
			}
			if in[i] == nil {
				in[i] = map[string]bool{}
			}
			in[i][f.pkg+"/"+filepath.Base(f.path)] = true
		})
	}
	for i := range r.bounds {
		r.bounds[i].UsedIn = slices.Sorted(maps.Keys(in[i]))
	}
}

// otherNames adds constants that are another name of a bound.
func (r *reader) otherNames(f file, at map[string]int) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for j, value := range spec.Values {
			of := ""
			switch v := value.(type) {
			case *ast.Ident:
				of = f.pkg + "." + v.Name
			case *ast.SelectorExpr:
				if pkg, ok := v.X.(*ast.Ident); ok {
					of = pkg.Name + "." + v.Sel.Name
				}
			}
			if i, ok := at[of]; ok && j < len(spec.Names) {
				at[f.pkg+"."+spec.Names[j].Name] = i
			}
		}
		return true
	})
}

// eachName calls a function with each name in a file, as package.name.
func eachName(f file, each func(name string, id *ast.Ident)) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				each(pkg.Name+"."+n.Sel.Name, n.Sel)
			}
			ast.Inspect(n.X, func(x ast.Node) bool {
				if id, ok := x.(*ast.Ident); ok {
					each(f.pkg+"."+id.Name, id)
				}
				return true
			})
			return false
		case *ast.Ident:
			each(f.pkg+"."+n.Name, n)
		}
		return true
	})
}
