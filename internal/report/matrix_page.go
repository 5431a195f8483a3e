package report

import (
	"fmt"
	"html/template"
	"io"

	"slowpath/internal/lab/matrix"
	"slowpath/internal/report/layout"
)

// MatrixPage writes an HTML page, which needs nothing from elsewhere: a table per topology, with a row per client and a
// column per server.
func MatrixPage(w io.Writer, m *matrix.Matrix) error {
	if err := matrixPage.Execute(w, matrixTables(m)); err != nil {
		return fmt.Errorf("writing the page of the matrix: %w", err)
	}
	return nil
}

type matrixView struct {
	Summary     string
	Interrupted bool
	Settings    []string
	Tables      []matrixTable
}

type matrixTable struct {
	Title   string
	Servers []string
	Rows    []matrixRow
}

type matrixRow struct {
	Client string
	Boxes  []matrixBox
}

// matrixBox is a cell as the page shows it. Share is of the table's highest rate, 0 to 100.
type matrixBox struct {
	There, Measured                 bool
	Rate, P50, P99, Errors, Meaning string
	Finding, Library                string
	Share                           int
	Ill                             bool
}

func matrixTables(m *matrix.Matrix) matrixView {
	v := matrixView{Summary: m.Summary(), Interrupted: m.Interrupted, Settings: matrixSettings(m)}
	for _, t := range matrix.Topologies() {
		var in []matrix.Cell
		most := 0.0
		for _, c := range m.Cells {
			if c.Topology == t {
				in = append(in, c)
				most = max(most, c.RequestsPerSecond)
			}
		}
		if len(in) > 0 {
			v.Tables = append(v.Tables, tableOf(topologyOf(in[0], m.Settings), in, most))
		}
	}
	return v
}

func tableOf(title string, in []matrix.Cell, most float64) matrixTable {
	t := matrixTable{Title: title}
	place := map[string]int{}
	rows := map[string]int{}
	for _, c := range in {
		if _, ok := place[c.Server]; !ok {
			place[c.Server] = len(t.Servers)
			t.Servers = append(t.Servers, c.Server)
		}
	}
	for _, c := range in {
		if _, ok := rows[c.Client]; !ok {
			rows[c.Client] = len(t.Rows)
			t.Rows = append(t.Rows, matrixRow{Client: c.Client, Boxes: make([]matrixBox, len(t.Servers))})
		}
		t.Rows[rows[c.Client]].Boxes[place[c.Server]] = boxOf(c, most)
	}
	return t
}

func boxOf(c matrix.Cell, most float64) matrixBox {
	f := matrixFigures(c)
	b := matrixBox{
		There: true, Measured: c.Measured(), Rate: f[0], P50: f[1], P99: f[2], Errors: f[3],
		Meaning: layout.Clean(matrixMeaning(c)), Finding: c.Finding, Library: c.Library,
		Ill: c.Confidence > 0,
	}
	if most > 0 {
		b.Share = int(100 * c.RequestsPerSecond / most)
	}
	return b
}

var matrixPage = template.Must(template.New("matrix").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>slowpath matrix</title>
<style>
body{font:14px sans-serif;margin:2em;color:#222}table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.4em .7em;text-align:left;vertical-align:top}
th{background:#f4f4f4}.rate{font-weight:bold;font-size:115%}.bar{height:4px;background:#4a7;margin:.2em 0}.dim{color:#777;font-size:90%;max-width:22em}.ill{color:#b00}
</style></head><body>
<h1>Clients against servers</h1>
<p>{{.Summary}}{{if .Interrupted}} <b class="ill">It was ended before all cells were measured.</b>{{end}}</p>
{{range .Tables}}<h2>{{.Title}}</h2>
<table><tr><th>client</th>{{range .Servers}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr><th>{{.Client}}</th>{{range .Boxes}}<td>{{if not .There}}<span class="dim">not measured</span>{{else if .Measured}}<span class="rate" title="{{.Library}}">{{.Rate}}/s</span><div class="bar" style="width:{{.Share}}%"></div>p50 {{.P50}}, p99 {{.P99}}, errors {{.Errors}}<div class="dim{{if .Ill}} ill{{end}}">{{.Meaning}}</div>{{else}}<div class="dim">{{.Meaning}}</div>{{end}}</td>{{end}}</tr>
{{end}}</table>
{{end}}<p class="dim">{{range $i, $s := .Settings}}{{if $i}} · {{end}}{{$s}}{{end}}</p>
</body></html>
`))
