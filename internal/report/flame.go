package report

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/source/profile/stacks"
)

var (
	//go:embed flame.html
	flamePage string
	//go:embed flame.css
	flameStyle string
	//go:embed flame.js
	flameScript string

	flameTemplate = template.Must(template.New("flame").Parse(flamePage))
)

// Flame is a profile to be drawn: callers above, callees below them, as wide as their part of the whole.
type Flame struct {
	Title string
	Note  string // what is to be known of it, a sentence
	Unit  string // of its values: "nanoseconds" becomes a duration
	Root  *stacks.Node
	Top   []stacks.Function // that a table lists
	// Baseline is what Root is compared with, in colours; nil: nothing. BaselineName says what it is: "the rest of the
	// watch".
	Baseline     *stacks.Node
	BaselineName string
}

// Measures of a drawing.
const (
	flameRow   = 18      // pixels
	flameLeast = 0.00005 // a frame of a smaller share is left out, with all below it
	flameDepth = 250     // rows
	flameShort = 0.02    // the share from which a name has room, as long as nothing has measured
)

// FlamePage writes an HTML page with drawings, which needs nothing from elsewhere. They can be read without scripts;
// with them, one can zoom and search.
func FlamePage(w io.Writer, title string, flames []Flame) error {
	v := flameView{
		Title: layout.OneLine(title), Style: template.CSS(flameStyle), Script: template.JS(flameScript), // our own
	}
	for i, f := range flames {
		v.Graphs = append(v.Graphs, f.graph(i+1))
	}
	if err := flameTemplate.Execute(w, v); err != nil {
		return fmt.Errorf("writing flame graphs: %w", err)
	}
	return nil
}

// flameView is what the template shows. Its texts have no control characters; the template escapes the rest.
type flameView struct {
	Title  string
	Style  template.CSS
	Script template.JS
	Graphs []flameGraph
}

type flameGraph struct {
	ID, Title, Note, Value string
	Height, Row            int // pixels
	Frames                 []flameFrame
	Top                    []flameFunction
}

// flameFrame is a function below its caller. X and Width are shares of the whole in per cent, the rest is pixels.
type flameFrame struct {
	X, Width, Name, Label, Tip, Fill string
	Y, Height, Base                  int
	Level, Tab                       int
	Narrow                           bool
}

// flameFunction is a row of the table below a drawing, as text.
type flameFunction struct{ Own, All, Name string }

func (f Flame) graph(nth int) flameGraph {
	rows := min(depth(f.Root, f.Root.Value), flameDepth)
	g := flameGraph{
		ID: fmt.Sprintf("f%d", nth), Title: layout.OneLine(f.Title), Note: layout.OneLine(f.Note),
		Value: f.value(f.Root.Value), Height: rows * flameRow, Row: flameRow,
	}
	if f.Root.Value > 0 {
		f.draw(&g, f.Root, f.Baseline, 0, 0, rows)
	}
	share := func(v int64) string {
		return fmt.Sprintf("%.1f %%", 100*float64(v)/float64(max(f.Root.Value, 1)))
	}
	for _, t := range f.Top {
		g.Top = append(g.Top, flameFunction{Own: share(t.Own), All: share(t.All), Name: layout.OneLine(t.Name)})
	}
	return g
}

func shareOf(n *stacks.Node, all int64) float64 { return float64(n.Value) / float64(max(all, 1)) }

// depth is how many rows a node needs, with those below it that are wide enough.
func depth(n *stacks.Node, all int64) int {
	most := 0
	for _, b := range n.Below {
		if shareOf(b, all) >= flameLeast {
			most = max(most, depth(b, all))
		}
	}
	return most + 1
}

// draw adds a node and those below it. x is its left edge as a share of the whole, baseline the same node of what it
// is compared with.
func (f Flame) draw(g *flameGraph, n, baseline *stacks.Node, x float64, level, rows int) {
	g.Frames = append(g.Frames, f.frame(n, baseline, x, level))
	for _, b := range n.Below {
		w := shareOf(b, f.Root.Value)
		if w >= flameLeast && level+1 < rows {
			f.draw(g, b, baseline.Find(b.Name), x, level+1, rows)
		}
		x += w
	}
}

func (f Flame) frame(n, baseline *stacks.Node, x float64, level int) flameFrame {
	wide, name := shareOf(n, f.Root.Value), layout.OneLine(n.Name)
	out := flameFrame{
		X: perCent(x), Width: perCent(wide), Y: level * flameRow, Height: flameRow, Base: flameRow - 5,
		Level: level, Tab: -1, Narrow: wide < flameShort, Name: name, Label: shortName(name), Fill: colour(n.Name),
		Tip: fmt.Sprintf("%s: %s (%.2f %%)", name, f.value(n.Value), 100*wide),
	}
	if level == 0 {
		out.Tab = 0
	}
	if f.Baseline != nil {
		other := 0.0
		if baseline != nil {
			other = shareOf(baseline, f.Baseline.Value)
		}
		out.Tip += fmt.Sprintf("; %s: %.2f %%", layout.OneLine(f.BaselineName), 100*other)
		out.Fill = contrast(wide - other)
	}
	return out
}

// perCent is a place in a drawing.
func perCent(share float64) string { return fmt.Sprintf("%.5f%%", 100*share) }

func (f Flame) value(v int64) string {
	if f.Unit == "nanoseconds" {
		return format.Duration(v)
	}
	return fmt.Sprintf("%d %s", v, layout.OneLine(f.Unit))
}

// shortName leaves the path of a package out, which its tip has.
func shortName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		return name[i+1:]
	}
	return name
}

// colour is the same for all frames of a package or class; the kernel's are apart.
func colour(name string) string {
	of, hue := name, uint32(10)
	if strings.HasSuffix(name, "_[k]") {
		of, hue = "kernel"+name[:min(2, len(name))], 195
	} else if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if j := strings.IndexByte(name[i:], '.'); j >= 0 {
			of = name[:i+j]
		}
	} else if i := strings.IndexByte(name, '.'); i >= 0 {
		of = name[:i]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // a hash takes all writes
	sum := h.Sum32()
	return fmt.Sprintf("hsl(%d,%d%%,%d%%)", hue+sum%45, 55+sum>>8%25, 68+sum>>16%12)
}

// contrast is red for more than in the baseline, blue for less, the deeper the farther apart; white is no difference.
func contrast(more float64) string {
	hue := 8
	if more < 0 {
		hue, more = 215, -more
	}
	// A tenth of the whole is a deep colour already: what is below main always differs little.
	return fmt.Sprintf("hsl(%d,85%%,%.0f%%)", hue, 95-35*min(1, more/0.1))
}
