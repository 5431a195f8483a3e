package matrix

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("matrix").Parse(pageSource))

// Page writes an HTML page, which needs nothing from elsewhere: a table per topology, with a row per client and a
// column per server.
func Page(w io.Writer, m *Matrix) error {
	if err := pageTemplate.Execute(w, viewOf(m)); err != nil {
		return fmt.Errorf("writing the page of the matrix: %w", err)
	}
	return nil
}

// view is what the template shows. Its texts have no control characters; the template escapes the rest.
type view struct {
	Summary     string
	Interrupted bool
	Settings    []string
	Tables      []table
}

type table struct {
	Title   string
	Servers []string
	Rows    []row
}

type row struct {
	Client string
	Boxes  []box
}

// box is a cell as the page shows it. Share is of the table's highest rate, 0 to 100.
type box struct {
	There, Measured                 bool
	Rate, P50, P99, Errors, Meaning string
	Mean                            string // empty: not known
	Library                         string
	Share                           int
	Ill                             bool // doctor found a cause
}

func viewOf(m *Matrix) view {
	v := view{Summary: layout.Clean(m.Summary()), Interrupted: m.Interrupted, Settings: m.setting()}
	for _, t := range Topologies() {
		var in []Cell
		most := 0.0
		for _, c := range m.Cells {
			if c.Topology == t {
				in = append(in, c)
				most = max(most, c.RequestsPerSecond)
			}
		}
		if len(in) > 0 {
			v.Tables = append(v.Tables, tableOf(in[0].topology(m.Settings), in, most))
		}
	}
	return v
}

func tableOf(title string, in []Cell, most float64) table {
	t := table{Title: title}
	columns, rows := map[string]int{}, map[string]int{}
	for _, c := range in {
		if _, ok := columns[c.Server]; !ok {
			columns[c.Server] = len(t.Servers)
			t.Servers = append(t.Servers, layout.Clean(c.Server))
		}
	}
	for _, c := range in {
		if _, ok := rows[c.Client]; !ok {
			rows[c.Client] = len(t.Rows)
			t.Rows = append(t.Rows, row{Client: layout.Clean(c.Client), Boxes: make([]box, len(t.Servers))})
		}
		t.Rows[rows[c.Client]].Boxes[columns[c.Server]] = c.box(most)
	}
	return t
}

func (c Cell) box(most float64) box {
	n := c.numbers()
	b := box{
		There: true, Measured: c.Measured(), Rate: n[0], P50: n[2], P99: n[3], Errors: n[4],
		Meaning: layout.Clean(c.meaning()), Library: layout.Clean(c.Library), Ill: c.Confidence > 0,
	}
	if c.MeanNs > 0 {
		b.Mean = format.Duration(c.MeanNs)
	}
	if most > 0 {
		b.Share = int(100 * c.RequestsPerSecond / most)
	}
	return b
}
