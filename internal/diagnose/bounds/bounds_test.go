package bounds

import (
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// readText reads one file of a package.
func readText(t *testing.T, text string) ([]Bound, []Problem) {
	t.Helper()
	r := &reader{fset: token.NewFileSet(), text: map[string][]byte{}}
	if err := r.add("cause", "internal/diagnose/cause/x.go", []byte("package cause\n\n"+text)); err != nil {
		t.Fatal(err)
	}
	return r.read()
}

func TestDeclarations(t *testing.T) {
	all, problems := readText(t, `
// least is the least.
// Bound: kernel, TCP_RTO_MIN
// of Linux.
const least = int64(200e6)

// Shares of two things. Bound: guess.
const (
	one = 0.1
	two = 0.2 // of the calls. Bound: majority, of the calls.
	// three and four go together.
	// Bound: server, hz.
	three = 3
	four  = 4
)

const (
	A = iota
	B
)

const name = "x"

func f(x int64) bool {
	const near = 5 // Bound: guess, five.
	return x > least+near
}
`)
	for _, p := range problems {
		t.Error(p)
	}
	want := []Bound{
		{
			Name: "cause.least", Value: "200e6", Kind: "kernel", Meaning: "least is the least.",
			Reason: "TCP_RTO_MIN of Linux.",
		},
		{Name: "cause.one", Value: "0.1", Kind: "guess", Meaning: "Shares of two things."},
		{
			Name: "cause.two", Value: "0.2", Kind: "majority", Meaning: "Shares of two things. of the calls.",
			Reason: "of the calls.",
		},
		{Name: "cause.three", Value: "3", Kind: "server", Meaning: "three and four go together.", Reason: "hz."},
		{Name: "cause.four", Value: "4", Kind: "server", Meaning: "three and four go together.", Reason: "hz."},
		{Name: "cause.f.near", Value: "5", Kind: "guess", Reason: "five."},
	}
	if len(all) != len(want) {
		t.Fatalf("got %+v", all)
	}
	for i, w := range want {
		g := all[i]
		g.File, g.Line, g.UsedIn = "", 0, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("got  %+v\nwant %+v", g, w)
		}
	}
	if used := all[0].UsedIn; !slices.Equal(used, []string{"cause/x.go"}) {
		t.Errorf("used in %v", used)
	}
}

func TestDeclarationsWithoutReason(t *testing.T) {
	for text, problem := range map[string]string{
		"const x = 3":                                            "x has no reason",
		"// x is three.\nconst x = 3":                            "x has no reason",
		"const x = 3 // Bound: kernel.":                          "needs a reason",
		"const x = 3 // Bound: fate, so it is.":                  `no kind "fate"`,
		"var x = 0.5":                                            "x has no reason",
		"func f() {\n\tconst x = int64(2e9)\n}":                  "x has no reason",
		"const x = 3 * time.Second":                              "x has no reason",
		"const (\n\ty = 1 // Bound: guess.\n\n// x.\n\tx = 2\n)": "x has no reason",
	} {
		_, problems := readText(t, text)
		if len(problems) != 1 || !strings.Contains(problems[0].Text, problem) {
			t.Errorf("%s: got %v, want %q", text, problems, problem)
		}
	}
}

func TestLiterals(t *testing.T) {
	for expression, bound := range map[string]bool{
		"x > 3":                            true,
		"x*10 >= y":                        true,
		"x > 2":                            true,
		"float64(x) < 0.5":                 true,
		"x > y+int64(10e6)":                true,
		"x > min(y, 5)":                    true,
		"g(x, 0.3)":                        true,
		"x > 0":                            false,
		"x >= 1":                           false,
		"2*x > y":                          false,
		"x > y/2":                          false,
		"x/1000 > y":                       false,
		"float64(x)/1e9 > z":               false,
		"len(s) >= 2":                      false,
		"len(s) >= 3":                      true,
		"x == 4":                           false,
		"s[4] != nil":                      false,
		"x > int64(z+0.5)":                 false,
		"n.ServerAtLeast(7, 4)":            false,
		"stats.Quantile(all, 0.99) > x":    false,
		"f.Confidence < 0.6":               true,
		"z > max(y, 1e-9)":                 false,
		`fmt.Sprintf("%d", max(x, 5)) > s`: false,
	} {
		_, problems := readText(t, "func f() bool { return "+expression+" }")
		if got := len(problems) > 0; got != bound {
			t.Errorf("%s: a bound: %v, want %v", expression, got, bound)
		}
	}
	for statement, bound := range map[string]bool{
		"f.Share = 0.7":      true,
		"f.Share = 1":        false,
		"share := 0.7":       true,
		"f = &F{Share: 0.7}": true,
	} {
		_, problems := readText(t, "func f() {\n"+statement+"\n}")
		if got := len(problems) > 0; got != bound {
			t.Errorf("%s: a bound: %v, want %v", statement, got, bound)
		}
	}
}

// TestTable: the table has each bound once, and what hangs on it.
func TestTable(t *testing.T) {
	all := []Bound{
		{Name: "cause.aNs", File: "x.go", Value: "20e6", Kind: "guess", Meaning: "aNs is the longest wait."},
		{Name: "cause.b", File: "x.go", Value: "3", Kind: "kernel", Reason: "B."},
	}
	text := string(Markdown(all, Sensitivities{"cause.aNs": {Value: "20e6", Read: 7, Changes: map[string][]Change{
		"0.7": {{Recording: "r", First: "x -> y"}, {Recording: "s", Found: "+x"}},
	}}}))
	for _, row := range []string{
		"| [`cause.aNs`](../x.go) | `20e6` (20ms) | The longest wait. |  |  | **1** + 1 of 7 | 0 of 7 |",
		"| [`cause.b`](../x.go) | `3` |  | B. |  | – | – |",
		"| [guess](#guess) | 1 |",
		"| [noticed](#noticed) | 0 |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("no row %s in\n%s", row, text)
		}
	}
}

func TestStale(t *testing.T) {
	all := []Bound{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c", Value: "3"}}
	s := Sensitivities{"a": {Value: "1"}, "b": {Value: "9"}, "d": {Value: "4"}}
	if got := s.Stale(all); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("stale: %v", got)
	}
	if s.Forget(all); len(s) != 1 {
		t.Errorf("kept: %v", s)
	}
}

// TestNewPackage: a package of the diagnosis that is not known is not left out in silence.
func TestNewPackage(t *testing.T) {
	root := t.TempDir()
	for _, pkg := range append(slices.Clone(Packages), tools...) {
		if err := os.MkdirAll(filepath.Join(root, "internal/diagnose", pkg), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Read(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "internal/diagnose/novel"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(root); err == nil || !strings.Contains(err.Error(), "internal/diagnose/novel") {
		t.Errorf("a new package: %v", err)
	}
}
