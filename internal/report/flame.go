package report

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"strings"

	"slowpath/internal/stacks"
)

// Flame is a profile to be drawn: callers below, callees above them, as wide as their part of the whole.
type Flame struct {
	Title string
	Unit  string // of its values: "nanoseconds" becomes a duration
	Root  *stacks.Node
}

// Measures of a drawing, in pixels.
const (
	flameWidth  = 1200.0
	flameRow    = 17
	flameLeast  = 0.4 // a frame that is narrower is left out, with all above it
	flameLetter = 6.6 // of the font
	flameDepth  = 200 // rows
)

// FlamePage writes an HTML page with drawings, which needs nothing from elsewhere.
func FlamePage(w io.Writer, title string, flames []Flame) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%[1]s</title>\n"+
		"<style>body{font:14px sans-serif;margin:2em}svg{font:11px monospace;max-width:100%%;height:auto}rect:hover{stroke:#000}</style></head><body>\n<h1>%[1]s</h1>\n", text(title))
	for _, f := range flames {
		fmt.Fprintf(out, "<h2>%s</h2>\n", text(f.Title))
		drawFlame(out, f)
	}
	fmt.Fprintln(out, "</body></html>")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing flame graphs: %w", err)
	}
	return nil
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
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" role=\"img\"><title>%s</title>\n", flameWidth, rows*flameRow, flameWidth, text(f.Title))
	if f.Root.Value > 0 {
		drawFrame(out, f, f.Root, 0, 0, rows)
	}
	fmt.Fprintln(out, "</svg>")
}

func flameWide(n *stacks.Node, all int64) float64 {
	return flameWidth * float64(n.Value) / float64(max(all, 1))
}

// depth is how many rows a node needs, with those above it that are wide enough.
func depth(n *stacks.Node, all int64) int {
	most := 0
	for _, b := range n.Below {
		if flameWide(b, all) >= flameLeast {
			most = max(most, depth(b, all))
		}
	}
	return most + 1
}

func drawFrame(out *bufio.Writer, f Flame, n *stacks.Node, x float64, level, rows int) {
	wide := flameWide(n, f.Root.Value)
	y := (rows - 1 - level) * flameRow
	fmt.Fprintf(out, "<g><title>%s: %s (%.2f %%)</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" rx=\"1\"/>",
		text(n.Name), f.value(n.Value), 100*float64(n.Value)/float64(f.Root.Value), x, y, max(wide-0.3, 0.1), flameRow-1, colour(n.Name))
	if room := int((wide - 4) / flameLetter); room >= 3 {
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\">%s</text>", x+2, y+flameRow-5, text(cut(shortName(n.Name), room)))
	}
	fmt.Fprintln(out, "</g>")
	for _, b := range n.Below {
		if w := flameWide(b, f.Root.Value); w >= flameLeast && level+1 < rows {
			drawFrame(out, f, b, x, level+1, rows)
			x += w
		}
	}
}

func (f Flame) value(v int64) string {
	if f.Unit == "nanoseconds" {
		return duration(v)
	}
	return fmt.Sprintf("%d %s", v, text(f.Unit))
}

// shortName leaves the path of a package out, which its tip has.
func shortName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// colour is the same for all frames of a package or class.
func colour(name string) string {
	of := name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if j := strings.IndexByte(name[i:], '.'); j >= 0 {
			of = name[:i+j]
		}
	} else if i := strings.IndexByte(name, '.'); i >= 0 {
		of = name[:i]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // a hash takes all writes
	sum := h.Sum32()
	return fmt.Sprintf("hsl(%d,%d%%,%d%%)", 10+sum%50, 60+sum>>8%30, 62+sum>>16%14)
}

// text is what comes from elsewhere, fit for HTML.
func text(s string) string { return html.EscapeString(OneLine(s)) }
