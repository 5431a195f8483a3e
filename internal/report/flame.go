package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/source/profile/stacks"
)

var (
	//go:embed flame.css
	flameStyle string
	//go:embed flame.js
	flameScript string
)

// Flame is a profile to be drawn: callers above, callees below them, as wide as their part of the whole.
type Flame struct {
	Title string
	Note  string // what is to be known of it, a sentence
	Unit  string // of its values: "nanoseconds" becomes a duration
	Root  *stacks.Node
	Top   []stacks.Function // that a table lists
	// Beside is what Root is held against, in colours; nil: nothing. BesideName says what it is: "the rest of the
	// watch".
	Beside     *stacks.Node
	BesideName string
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
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "+
		"content=\"width=device-width\"><title>%[1]s</title>\n<style>\n%[2]s</style></head><body>\n<h1>%[1]s</h1>\n",
		text(title), flameStyle)
	fmt.Fprint(out, "<p class=\"dim\">Callers stand above what they call; the width is the share of the whole. Click "+
		"or <kbd>Enter</kbd> zooms, <kbd>Esc</kbd> goes back, "+
		"arrows lead to callers, callees and what is beside, <kbd>/</kbd> searches. <code>_[k]</code> is a function "+
		"of the kernel, <code>[name]</code> one of a file without its name.</p>\n")
	if len(flames) > 1 {
		fmt.Fprint(out, "<ul>\n")
		for i, f := range flames {
			fmt.Fprintf(out, "<li><a href=\"#f%d\">%s</a> <span class=\"dim\">%s</span></li>\n", i+1, text(f.Title),
				f.value(f.Root.Value))
		}
		fmt.Fprint(out, "</ul>\n")
	}
	for i, f := range flames {
		flameSection(out, f, i+1)
	}
	fmt.Fprintf(out, "<script>\n%s</script>\n</body></html>\n", flameScript)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing flame graphs: %w", err)
	}
	return nil
}

func flameSection(out *bufio.Writer, f Flame, id int) {
	fmt.Fprintf(out, "<section class=\"flame\" id=\"f%d\">\n<h2>%s</h2>\n<p class=\"dim\">%s in all. %s</p>\n", id,
		text(f.Title), f.value(f.Root.Value), text(f.Note))
	fmt.Fprint(out, "<div class=\"bar\" hidden><input type=\"search\" aria-label=\"search for a function\" "+
		"placeholder=\"function\"> <button type=\"button\" disabled>whole graph</button> <output></output></div>\n"+
		"<div class=\"tip\" aria-live=\"polite\"></div>\n")
	drawFlame(out, f)
	if len(f.Top) > 0 {
		flameTable(out, f)
	}
	fmt.Fprint(out, "</section>\n")
}

// flameTable lists the functions in which most was spent, for those who read rather than look.
func flameTable(out *bufio.Writer, f Flame) {
	fmt.Fprint(out, "<table><tr><th class=\"r\">itself</th><th class=\"r\">with callees</th><th>function</th></tr>\n")
	share := func(v int64) float64 { return 100 * float64(v) / float64(max(f.Root.Value, 1)) }
	for _, t := range f.Top {
		fmt.Fprintf(out, "<tr><td class=\"r\">%.1f %%</td><td class=\"r\">%.1f %%</td><td "+
			"class=\"name\">%s</td></tr>\n", share(t.Own), share(t.All), text(t.Name))
	}
	fmt.Fprint(out, "</table>\n")
}

// FlameSVG writes one drawing, to be embedded in a page.
func FlameSVG(w io.Writer, f Flame) error {
	out := bufio.NewWriter(w)
	drawFlame(out, f)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing a flame graph: %w", err)
	}
	return nil
}

func drawFlame(out *bufio.Writer, f Flame) {
	rows := min(depth(f.Root, f.Root.Value), flameDepth)
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%d\" data-row=\"%d\" "+
		"role=\"tree\" aria-label=\"%[3]s\"><title>%[3]s</title>\n", rows*flameRow, flameRow, text(f.Title))
	if f.Root.Value > 0 {
		drawFrame(out, f, f.Root, f.Beside, 0, 0, rows)
	}
	fmt.Fprintln(out, "</svg>")
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

// drawFrame draws a node and those below it. x is its left edge as a share of the whole, beside the same node of what
// it is held against.
func drawFrame(out *bufio.Writer, f Flame, n, beside *stacks.Node, x float64, level, rows int) {
	wide := shareOf(n, f.Root.Value)
	tip := fmt.Sprintf("%s: %s (%.2f %%)", OneLine(n.Name), f.value(n.Value), 100*wide)
	fill := colour(n.Name)
	if f.Beside != nil {
		other := 0.0
		if beside != nil {
			other = shareOf(beside, f.Beside.Value)
		}
		tip += fmt.Sprintf("; %s: %.2f %%", OneLine(f.BesideName), 100*other)
		fill = contrast(wide - other)
	}
	class, tab := "f", -1
	if wide < flameShort {
		class = "f n"
	}
	if level == 0 {
		tab = 0
	}
	fmt.Fprintf(out, "<svg class=\"%s\" x=\"%.5f%%\" y=\"%d\" width=\"%.5f%%\" height=\"%d\" data-l=\"%d\" "+
		"data-n=\"%s\" tabindex=\"%d\" role=\"treeitem\"><title>%s</title>"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/><text x=\"3\" y=\"%d\">%s</text></svg>\n",
		class, 100*x, level*flameRow, 100*wide, flameRow, level, text(n.Name), tab, text(tip), fill, flameRow-5,
		text(shortName(n.Name)))
	for _, b := range n.Below {
		w := shareOf(b, f.Root.Value)
		if w >= flameLeast && level+1 < rows {
			drawFrame(out, f, b, beside.Find(b.Name), x, level+1, rows)
		}
		x += w
	}
}

func (f Flame) value(v int64) string {
	if f.Unit == "nanoseconds" {
		return format.Duration(v)
	}
	return fmt.Sprintf("%d %s", v, text(f.Unit))
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

// contrast is red for more than beside, blue for less, the deeper the farther apart; white is no difference.
func contrast(more float64) string {
	hue := 8
	if more < 0 {
		hue, more = 215, -more
	}
	// A tenth of the whole is a deep colour already: what is below main always differs little.
	return fmt.Sprintf("hsl(%d,85%%,%.0f%%)", hue, 95-35*min(1, more/0.1))
}

// text is what comes from elsewhere, fit for HTML.
func text(s string) string { return html.EscapeString(OneLine(s)) }
