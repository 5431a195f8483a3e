package bounds

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// literals finds numbers in expressions that are bounds, and should have a name and a reason. Whole numbers are bounds
// in comparisons and as arguments of min and max; others are bounds everywhere. No bounds are
//   - 0, 1 and -1; 2 as a factor or a divisor: a half needs no reason;
//   - units: 1000, 1e6, 1e7 (percent) and 1e9 as a factor or a divisor; the 0.5 of rounding; 1e-9, which guards a
//     division;
//   - numbers that a whole number is equal or unequal to, and lengths up to 2: they describe a form;
//   - indices, lengths of slices, quantiles, and numbers in texts.
func (r *reader) literals(f file) {
	var above []ast.Node
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if lit, ok := n.(*ast.BasicLit); ok && r.isBound(lit, above) {
			r.problem(lit.Pos(), "the number %s decides: declare it as a constant with its reason (CONTRIBUTING.md)",
				lit.Value)
		}
		above = append(above, n)
		return true
	})
}

func (r *reader) isBound(lit *ast.BasicLit, above []ast.Node) bool {
	if lit.Kind != token.INT && lit.Kind != token.FLOAT {
		return false
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(lit.Value, "_", ""), 64)
	if err != nil || v == 0 || v == 1 || v == 1e-9 { // err: 0x…, which is a mask
		return false
	}
	return !r.isForm(lit, above) && (lit.Kind == token.FLOAT || isCompared(lit, v, above)) && !isUnit(v, above)
}

// isForm: the number is declared, or belongs to a text, an index or a quantile.
func (r *reader) isForm(n ast.Node, above []ast.Node) bool {
	for i := len(above) - 1; i >= 0; i-- {
		switch p := above[i].(type) {
		case *ast.GenDecl:
			if p.Tok == token.CONST {
				return true
			}
		case *ast.ValueSpec:
			for _, v := range p.Values {
				if v == n && isNumber(v) && i == 2 { // file, declaration, specification
					return true
				}
			}
		case *ast.SliceExpr, *ast.ArrayType:
			return true
		case *ast.IndexExpr:
			if p.Index == n {
				return true
			}
		case *ast.BinaryExpr:
			if p.Op == token.SHL && p.Y == n {
				return true
			}
		case *ast.CallExpr:
			if slices.Contains(formCalls, calledName(p)) {
				return true
			}
		}
		n = above[i]
	}
	return false
}

// formCalls are functions whose numbers are part of a text, of a format, or name a quantile or a version.
var formCalls = []string{
	"Sprintf", "Brief", "support", "doubt", "counted", "Count", "List", "Top", "Quantile", "ValueAtQuantile",
	"ServerAtLeast", "UsesVersionBelow", "ParseInt", "ParseFloat", "Buffer",
}

func calledName(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// isCompared: the number is a side of a comparison, or an argument of min or max, perhaps with other operands.
func isCompared(n ast.Node, v float64, above []ast.Node) bool {
	for i := len(above) - 1; i >= 0; i-- {
		switch p := above[i].(type) {
		case *ast.ParenExpr, *ast.UnaryExpr:
		case *ast.CallExpr:
			if name := calledName(p); name == "min" || name == "max" {
				return true
			}
			if !isConversion(p) {
				return false
			}
		case *ast.BinaryExpr:
			switch p.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				other := p.X
				if p.X == n {
					other = p.Y
				}
				return v > 2 || !isLength(other)
			case token.EQL, token.NEQ, token.LAND, token.LOR:
				return false
			}
		default:
			return false
		}
	}
	return false
}

func isLength(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	return ok && calledName(c) == "len"
}

// isUnit: a factor or a divisor that converts units or halves, or the 0.5 that rounds.
func isUnit(v float64, above []ast.Node) bool {
	for i := len(above) - 1; i >= 0; i-- {
		switch p := above[i].(type) {
		case *ast.ParenExpr:
		case *ast.CallExpr:
			if !isConversion(p) {
				return false
			}
		case *ast.BinaryExpr:
			switch p.Op {
			case token.MUL, token.QUO:
				return slices.Contains([]float64{2, 1e3, 1e6, 1e7, 1e9, 2e9}, v)
			case token.ADD:
				return v == 0.5
			}
			return false
		default:
			return false
		}
	}
	return false
}
