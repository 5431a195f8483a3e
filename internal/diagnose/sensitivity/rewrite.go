package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"slowpath/internal/diagnose/bounds"
)

const (
	diagnosePath = "slowpath/internal/diagnose/"
	scalePath    = diagnosePath + "sensitivity/scale"
	rejudgePath  = diagnosePath + "sensitivity/rejudge"
	scaleName    = "boundscale" // how rewritten files import it
)

// rewriter writes copies of the packages of the diagnosis in which each use of a bound can be scaled.
type rewriter struct {
	root    string
	fset    *token.FileSet
	ids     map[string]int // by package and name, or by file and line for constants of functions
	alias   map[string]string
	scaled  map[int]bool
	overlay map[string]string // file to the file that replaces it
	dir     string            // of these files
	found   int               // of what is kept
	// ofCauses is the number of the first bound that only causes and the verdict read.
	ofCauses int
}

// rewrite writes an overlay for go build into a directory, and returns its file and which bounds it can scale. What
// cannot be scaled is used outside of functions, in constants only, or where no recording is judged.
func rewrite(root, dir string, all []bounds.Bound) (overlay string, scaled map[int]bool, err error) {
	w := &rewriter{
		root: root, dir: dir, fset: token.NewFileSet(), ids: map[string]int{}, alias: map[string]string{},
		scaled: map[int]bool{}, overlay: map[string]string{},
	}
	for i, b := range all {
		w.ids[b.Name] = i
		w.ids[fmt.Sprintf("%s:%d", b.File, b.Line)] = i
	}
	w.ofCauses = slices.IndexFunc(all, func(b bounds.Bound) bool { return strings.HasPrefix(b.Name, "cause.") })
	export, err := exports(root)
	if err != nil {
		return "", nil, err
	}
	imports := importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := export[path]
		if !ok {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
	for _, pkg := range bounds.Packages {
		if _, judges := export[diagnosePath+pkg]; !judges {
			continue
		}
		if err := w.rewritePackage(pkg, imports); err != nil {
			return "", nil, err
		}
	}
	if w.found != len(w.kept()) {
		return "", nil, fmt.Errorf("the source has %d of %d expressions whose results are kept", w.found, len(w.kept()))
	}
	text, err := json.Marshal(map[string]any{"Replace": w.overlay})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, w.scaled, os.WriteFile(overlay, text, 0o600)
}

// exports are the files with the types of the packages that the judge needs.
func exports(root string) (map[string]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", rejudgePath)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok && file != "" {
			files[path] = file
		}
	}
	return files, nil
}

func (w *rewriter) rewritePackage(pkg string, imports types.Importer) error {
	paths, err := filepath.Glob(filepath.Join(w.root, "internal/diagnose", pkg, "*.go"))
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.go") })
	var files []*ast.File
	for _, path := range paths {
		f, err := parser.ParseFile(w.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: imports}
	if _, err := config.Check(diagnosePath+pkg, w.fset, files, info); err != nil {
		return err
	}
	for _, f := range files {
		w.findAliases(f, info)
	}
	for i, f := range files {
		if err := w.rewriteFile(paths[i], f, info); err != nil {
			return err
		}
	}
	return nil
}

// key is how ids has a constant.
func (w *rewriter) key(obj types.Object) string {
	if obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() {
		return obj.Pkg().Name() + "." + obj.Name()
	}
	p := w.fset.Position(obj.Pos())
	name, err := filepath.Rel(w.root, p.Filename)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(name), p.Line)
}

// findAliases notes constants that are another name of a bound.
func (w *rewriter) findAliases(f *ast.File, info *types.Info) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) {
				continue
			}
			if obj := usedConst(spec.Values[i], info); obj != nil && info.Defs[name] != nil {
				w.alias[w.key(info.Defs[name])] = w.key(obj)
			}
		}
		return true
	})
}

// usedConst is the constant that an expression names, with its package or without; nil for another expression.
func usedConst(e ast.Expr, info *types.Info) types.Object {
	id, ok := e.(*ast.Ident)
	if sel, is := e.(*ast.SelectorExpr); is {
		id, ok = sel.Sel, true
	}
	if !ok {
		return nil
	}
	if c, ok := info.Uses[id].(*types.Const); ok {
		return c
	}
	return nil
}

// bound is the number of the bound that an expression names; false for none.
func (w *rewriter) bound(e ast.Expr, info *types.Info) (int, bool) {
	obj := usedConst(e, info)
	if obj == nil {
		return 0, false
	}
	key := w.key(obj)
	for to, ok := w.alias[key]; ok; to, ok = w.alias[key] {
		key = to
	}
	i, ok := w.ids[key]
	return i, ok
}

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

func (w *rewriter) rewriteFile(path string, f *ast.File, info *types.Info) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	offset := func(p token.Pos) int { return w.fset.Position(p).Offset }
	var edits []edit
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue // constants stay constants, and package variables are made before a bound is chosen
		}
		var above []ast.Node
		ast.Inspect(fn, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			if isConstant(n) {
				return false
			}
			if e, ok := n.(ast.Expr); ok {
				if i, ok := w.bound(e, info); ok {
					from, to := offset(e.Pos()), offset(e.End())
					edits = append(edits, edit{from, to, call(i, string(text[from:to]), typeOf(e, above, info))})
					w.scaled[i] = true
					return false
				}
			}
			above = append(above, n)
			return true
		})
	}
	for _, k := range w.kept() {
		if from := bytes.Index(text, []byte(k.make)); from >= 0 && strings.HasSuffix(filepath.ToSlash(path), k.file) {
			edits = append(edits, edit{from, from + len(k.make), k.once}, edit{len(text), len(text), k.more})
			w.found++
		}
	}
	if len(edits) == 0 {
		return nil
	}
	name := offset(f.Name.End())
	edits = append(edits, edit{name, name, "\n\nimport " + scaleName + " \"" + scalePath + "\"\n"})
	copied := filepath.Join(w.dir, fmt.Sprintf("%d_%s", len(w.overlay), filepath.Base(path)))
	w.overlay[path] = copied
	return errors.Join(os.WriteFile(copied, apply(text, edits), 0o600))
}

// kept is an expression whose result is the same for all bounds that it does not read.
type kept struct{ file, make, once, more string }

// kept are most of the work. Facts are computed when they are asked for the first time: they, and what causes find, are
// kept for the bounds of causes and the verdict alone.
func (w *rewriter) kept() []kept {
	once := func(from int, key, typ, make string) string {
		return fmt.Sprintf("%s.Once(%d, %s, func() %s { return %s })", scaleName, from, key, typ, make)
	}
	return []kept{
		{
			"facts/case.go", "account.Build(rec)",
			once(0, "rec", "*account.Ledger", "account.Build(rec)"), "",
		},
		{
			"verdict/diagnose.go", "facts.New(rec)",
			once(w.ofCauses, "judging{rec}", "*facts.Case", "facts.New(rec)"),
			"\ntype judging struct{ *recording.Recording }\n",
		},
		{
			"verdict/findings.go", "why.Explain(n)",
			"copyOf(" + once(w.ofCauses, "explained{why.ID, n}", "*cause.Finding", "copyOf(why.Explain(n))") + ")",
			copyOfFinding,
		},
	}
}

// copyOfFinding copies what the verdict changes in a finding.
const copyOfFinding = `
type explained struct {
	cause string
	of    *facts.Node
}

func copyOf(f *cause.Finding) *cause.Finding {
	if f == nil {
		return nil
	}
	c := *f
	c.Claims = slices.Clone(f.Claims)
	for i := range c.Claims {
		c.Claims[i].Calls = slices.Clone(c.Claims[i].Calls)
		c.Claims[i].Losses = slices.Clone(c.Claims[i].Losses)
	}
	c.Evidence, c.Against = slices.Clone(f.Evidence), slices.Clone(f.Against)
	c.FixSteps, c.See = slices.Clone(f.FixSteps), slices.Clone(f.See)
	c.IndependentOf = slices.Clone(f.IndependentOf)
	return &c
}
`

// isConstant: expressions that must be constant.
func isConstant(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.CONST
	case *ast.ArrayType:
		return n.Len != nil
	}
	return false
}

// typeOf is the type of a constant in an expression: that of the largest constant expression around it, which alone
// go/types converts.
func typeOf(e ast.Expr, above []ast.Node, info *types.Info) types.Type {
	for i := len(above) - 1; i >= 0; i-- {
		switch p := above[i].(type) {
		case *ast.ParenExpr, *ast.UnaryExpr, *ast.BinaryExpr:
			if info.Types[p.(ast.Expr)].Value == nil || info.Types[p.(ast.Expr)].Type == types.Typ[types.UntypedBool] {
				return info.TypeOf(e)
			}
			e = p.(ast.Expr)
		default:
			return info.TypeOf(e)
		}
	}
	return info.TypeOf(e)
}

// call is a use of a bound that can be scaled. An untyped constant gets the type that it has there.
func call(bound int, expression string, typ types.Type) string {
	switch b, basic := typ.(*types.Basic); {
	case basic:
		expression = types.Default(b).String() + "(" + expression + ")"
	case types.TypeString(typ, nil) == "time.Duration":
		expression = scaleName + ".Duration(" + expression + ")"
	}
	return fmt.Sprintf("%s.Of(%d, %s)", scaleName, bound, expression)
}

func apply(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	out := slices.Clone(text)
	for _, e := range edits {
		out = slices.Concat(out[:e.from], []byte(e.text), out[e.to:])
	}
	return out
}
