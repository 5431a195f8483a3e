package manyhosts

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// Schema names the JSON contract of an answer (docs/json.md).
const Schema = "slowpath.fleet/v1"

// Document is an answer, as --json prints it.
type Document struct {
	Schema   string           `json:"schema"`
	Question string           `json:"question"`
	From     time.Time        `json:"from"`
	To       time.Time        `json:"to"`
	Rows     []map[string]any `json:"rows"`
	Shared   []Shared         `json:"shared,omitempty"`
	Notes    []string         `json:"notes,omitempty"`
}

// JSON writes an answer.
func (a Answer) JSON(w io.Writer, f Filter) error {
	d := Document{
		Schema: Schema, Question: a.Question.Name, From: f.From.UTC(), To: f.To.UTC(), Rows: []map[string]any{},
		Shared: a.Shared, Notes: a.Notes,
	}
	for _, row := range a.Rows.Values {
		one := map[string]any{}
		for i, name := range a.Rows.Columns {
			one[name] = row[i]
		}
		d.Rows = append(d.Rows, one)
	}
	return layout.JSON(w, "the answer", d)
}

// Print writes an answer for people.
func (a Answer) Print(w io.Writer, f Filter, style layout.Style) error {
	p := layout.New(style)
	p.Section(a.Question.About)
	p.Piece("", f.From.UTC().Format(time.DateTime)+" to "+f.To.UTC().Format(time.DateTime)+" UTC", layout.Dim)
	switch {
	case len(a.Rows.Values) == 0:
		p.Line(p.Text("nothing of this time"))
	case a.Question.Name == "why":
		a.printWhy(p)
	default:
		a.printTable(p)
	}
	for _, note := range a.Notes {
		p.Gap()
		p.Piece("", note, layout.Dim)
	}
	return p.To(w, "the answer")
}

// printTable prints the rows with the columns in which any has something.
func (a Answer) printTable(p *layout.Page) {
	columns := a.Rows.ShownColumns()
	heads := make([]string, len(columns))
	for i, column := range columns {
		heads[i] = Head(column)
	}
	var rows [][]string
	for _, row := range a.Rows.Values {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = cmp.Or(a.Rows.Shown(row, column), "-")
		}
		rows = append(rows, cells)
	}
	p.Table(heads, rows)
}

// ShownColumns are the names of the columns in which any row has something.
func (r Rows) ShownColumns() (out []string) {
	for i, name := range r.Columns {
		if slices.ContainsFunc(r.Values, func(row []any) bool { return shown(name, row[i]) != "" }) {
			out = append(out, name)
		}
	}
	return out
}

// Shown is a value for people; empty: there is none. The unit is that of the name of its column.
func (r Rows) Shown(row []any, column string) string { return shown(column, r.at(row, column)) }

// Head is the head of a column: its name without its unit.
func Head(column string) string {
	for _, unit := range []string{"_unix_ns", "_ns", "_share"} {
		if name, ok := strings.CutSuffix(column, unit); ok {
			if unit == "_share" {
				name += " %"
			}
			column = name
			break
		}
	}
	return strings.ReplaceAll(column, "_", " ")
}

func shown(column string, value any) string {
	var number float64
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return layout.OneLine(v)
	case int64:
		number = float64(v)
	case float64:
		number = v
	default:
		return layout.OneLine(fmt.Sprint(v))
	}
	switch {
	case number == 0:
		return ""
	case strings.HasSuffix(column, "_unix_ns"):
		return time.Unix(0, int64(number)).UTC().Format("01-02 15:04:05")
	case strings.HasSuffix(column, "_ns"):
		return format.Brief(int64(number))
	case strings.HasSuffix(column, "_share"):
		return strings.TrimSuffix(format.Percent(number), " %")
	case number == float64(int64(number)):
		return format.Thousands(int64(number))
	}
	return format.Digits(number)
}

// printWhy prints a paragraph for each cause, and what those who suffer have in common.
func (a Answer) printWhy(p *layout.Page) {
	r := a.Rows
	for i, row := range r.Values {
		if i > 0 {
			p.Gap()
		}
		where := format.Count(r.Int(row, "nodes"), "node")
		if n := r.Int(row, "hosts"); n > 1 {
			where += ", seen from " + format.Count(n, "host")
		}
		p.Piece("", fmt.Sprintf("%s: %s in %s at %s, from %s to %s", r.Text(row, "cause"),
			format.Count(r.Int(row, "slow"), "slow call"), format.Count(r.Int(row, "incidents"), "incident"), where,
			r.Shown(row, "since_unix_ns"), r.Shown(row, "until_unix_ns")),
			layout.Bold)
		p.Piece("  ", r.Text(row, "title"), layout.None)
		for _, of := range []struct{ lead, column string }{
			{"  evidence: ", "evidence"}, {"  who: ", "culprit"}, {"  fix: ", "fix"},
		} {
			if text := r.Text(row, of.column); text != "" {
				p.Piece(of.lead, text, layout.None)
			}
		}
		p.Piece("  ", fmt.Sprintf("more: slowpath fleet SOURCE doctor %s/%s", r.Text(row, "host"),
			r.Text(row, "incident")), layout.Dim)
	}
	for _, kind := range []string{"node", "caller"} {
		first := true
		for _, s := range a.Shared {
			if s.Kind != kind {
				continue
			}
			if first {
				p.Gap()
				p.Piece("", fmt.Sprintf("What the %s that suffer have in common, and others do not:",
					format.Count(s.AllSuffering, kind)), layout.Bold)
				first = false
			}
			p.Piece("  ", s.String(), layout.None)
		}
	}
}
