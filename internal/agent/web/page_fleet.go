package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
)

// fleetFrame is what all pages of many hosts begin with.
type fleetFrame struct {
	Title, Class, Source, Between, Path string
	From, To, Cluster, Node, Caller     string // as given
	Ranges                              []link
	Notes                               []string
}

// fleetTable is an answer as a table.
type fleetTable struct {
	Name, Title, More, Failure, Empty string
	Heads                             []fleetHead
	Rows                              [][]fleetCell
}

type fleetHead struct {
	Name  string
	Right bool
}

type fleetCell struct {
	Head, Text, Link string
	Right            bool
}

// cause is one that incidents were judged to have.
type fleetCause struct {
	Title, Said, Evidence, Who, Fix, Link, Command string
}

type fleetView struct {
	fleetFrame
	Course *fleetCourse
	Causes []fleetCause
	Shared []fleetShared
	Why    string // why there are no causes
	Tables []fleetTable
}

type fleetShared struct {
	Title  string
	Traits []string
}

// fleetCourse is the course of slow calls as a drawing.
type fleetCourse struct {
	Bars           []fleetBar
	Width          int
	Most, From, To string
	Failure        string
}

type fleetBar struct {
	X, Y, Height int // of 100
	Class, Said  string
	Link         string
}

var fleetRanges = []string{"1h", "6h", "24h", "7d", "30d"}

// frame is what a page begins with, once the source is open.
func (f *Fleet) frame(r *http.Request, a *asked) fleetFrame {
	v := fleetFrame{
		Source: f.o.Source, Path: r.URL.Path, Cluster: a.filter.Cluster, Node: a.filter.Node, Caller: a.filter.Caller,
		From: a.values.Get("from"), To: a.values.Get("to"),
		Between: fmt.Sprintf("%s to %s UTC", when(a.filter.From), when(a.filter.To)),
	}
	for _, last := range fleetRanges {
		v.Ranges = append(v.Ranges, link{
			last, a.without("from").link(r.URL.Path, "last", last), a.values.Get("last") == last,
		})
	}
	return v
}

// overviewPage answers GET /.
func (f *Fleet) overviewPage(w http.ResponseWriter, r *http.Request) error {
	a, opened, err := f.begin(r, overviewRows)
	if err != nil {
		return err
	}
	defer opened.Done()
	var each []asking
	for _, name := range []string{"since", "why", "worst", "who", "changes", "incidents"} {
		q, _ := manyhosts.QuestionOf(name)
		one := asking{question: q, asked: a}
		if name == "since" {
			one.asked.filter.Limit = maxFleetRows
		}
		each = append(each, one)
	}
	f.all(r.Context(), opened.Source, each)
	v := fleetView{fleetFrame: f.frame(r, &a)}
	v.Course = f.courseOf(r, each[0])
	v.Causes, v.Shared, v.Why = f.causesOf(r, each[1])
	v.Title, v.Class = headline(each[0], each[1], each[2])
	for _, one := range each[2:] {
		v.Tables = append(v.Tables, f.tableOf(r, one))
	}
	return f.page(w, r, "fleet", "slowpath: "+v.Title, v)
}

// headline is the state of all hosts in one sentence.
func headline(since, why, worst asking) (said, class string) {
	if since.err != nil {
		return "The source did not answer", "inconclusive"
	}
	var calls, slow, failed, incidents, nodes int64 // nodes with slow calls
	rows := since.answer.Rows
	for _, row := range rows.Values {
		calls, slow = calls+rows.Int(row, "calls"), slow+rows.Int(row, "slow")
		failed, incidents = failed+rows.Int(row, "failed"), incidents+rows.Int(row, "incidents_begin")
	}
	for _, row := range worst.answer.Rows.Values {
		if worst.answer.Rows.Int(row, "slow") > 0 {
			nodes++
		}
	}
	if class = "healthy"; why.err != nil || incidents > 0 { // without a cause
		class = "inconclusive"
	}
	switch {
	case calls == 0:
		return "No call was seen in this time", "inconclusive"
	case slow == 0:
		said = fmt.Sprintf("None of %s slow", format.Count(calls, "call"))
	default:
		said = fmt.Sprintf("%s of %s slow", format.Thousands(slow), format.Count(calls, "call"))
	}
	switch {
	case nodes == int64(worst.asked.filter.Limit):
		said += fmt.Sprintf(" at %d or more nodes", nodes)
	case nodes > 0:
		said += " at " + format.Count(nodes, "node")
	}
	if failed > 0 {
		said += fmt.Sprintf(", %s failed", format.Thousands(failed))
	}
	if r := why.answer.Rows; why.err == nil && len(r.Values) > 0 {
		class = "findings"
		said += ": " + r.Text(r.Values[0], "cause")
		if more := len(r.Values) - 1; more > 0 {
			said += " and " + format.Count(int64(more), "other cause")
		}
	}
	return said, class
}

// courseOf draws a bar for each step: how many calls were slow.
func (f *Fleet) courseOf(r *http.Request, since asking) *fleetCourse {
	c := &fleetCourse{Failure: f.said(r, since.err)}
	filter := since.asked.filter
	rows := since.answer.Rows
	most := int64(1)
	for _, row := range rows.Values {
		most = max(most, rows.Int(row, "slow"))
	}
	first := filter.From.Truncate(filter.Step)
	c.Width = 10 * (int(filter.To.Sub(first)/filter.Step) + 1)
	c.From, c.To = shortTime(first, filter.Step), shortTime(filter.To, filter.Step)
	for _, row := range rows.Values {
		begin := time.Unix(0, rows.Int(row, "begin_unix_ns"))
		slow, incidents := rows.Int(row, "slow"), rows.Int(row, "incidents_begin")
		bar := fleetBar{X: 10 * int(begin.Sub(first)/filter.Step), Height: int(100 * slow / most)}
		if slow > 0 {
			bar.Height = max(bar.Height, 2)
		}
		bar.Y = 100 - bar.Height
		bar.Said = fmt.Sprintf("%s: %s of %s slow (%s)", shortTime(begin, filter.Step), format.Thousands(slow),
			format.Count(rows.Int(row, "calls"), "call"), format.Percent(rows.Float(row, "slow_share")))
		if incidents > 0 {
			bar.Class = "began"
			bar.Said += fmt.Sprintf("; %s began: %s", format.Count(incidents, "incident"), rows.Text(row, "cause"))
		}
		bar.Link = since.asked.without("last").link("/", "from", begin.UTC().Format(time.RFC3339), "to",
			begin.Add(filter.Step).UTC().Format(time.RFC3339))
		c.Bars = append(c.Bars, bar)
	}
	c.Most = format.Thousands(most)
	return c
}

// shortTime is a time as exact as a step needs.
func shortTime(t time.Time, step time.Duration) string {
	if step >= time.Hour {
		return t.UTC().Format("01-02 15:04")
	}
	return t.UTC().Format("15:04")
}

// without is what is asked about without a parameter.
func (a asked) without(name string) *asked {
	a.values = maps.Clone(a.values)
	delete(a.values, name)
	return &a
}

// causesOf are the causes, each where it cost most, and what those who suffer have in common.
func (f *Fleet) causesOf(r *http.Request, why asking) (causes []fleetCause, shared []fleetShared, none string) {
	if why.err != nil {
		return nil, nil, f.said(r, why.err)
	}
	rows := why.answer.Rows
	for _, row := range rows.Values {
		host, id := rows.Text(row, "host"), rows.Text(row, "incident")
		cluster := rows.Text(row, "cluster")
		seen := ""
		if n := rows.Int(row, "hosts"); n > 1 {
			seen = ", seen from " + format.Count(n, "host")
		}
		one := f.causeOf(rows, row, host, id)
		one.Link = incidentLink(cluster, host, id)
		one.Said = fmt.Sprintf("%s · %s in %s at %s%s · %s to %s", rows.Text(row, "cause"),
			format.Count(rows.Int(row, "slow"), "slow call"), format.Count(rows.Int(row, "incidents"), "incident"),
			format.Count(rows.Int(row, "nodes"), "node"), seen, rows.Shown(row, "since_unix_ns"),
			rows.Shown(row, "until_unix_ns"))
		causes = append(causes, one)
	}
	for _, kind := range []string{"node", "caller"} {
		one := fleetShared{}
		for _, s := range why.answer.Shared {
			if s.Kind == kind {
				one.Title = fmt.Sprintf("What the %s that suffer have in common, and others do not",
					format.Count(s.AllSuffering, kind))
				one.Traits = append(one.Traits, bound(s.String()))
			}
		}
		if one.Title != "" {
			shared = append(shared, one)
		}
	}
	return causes, shared, "No incident of this time has a cause."
}

// causeOf is a cause that a row has, of an incident.
func (f *Fleet) causeOf(rows manyhosts.Rows, row []any, host, id string) fleetCause {
	text := func(column string) string { return bound(rows.Text(row, column)) }
	return fleetCause{
		Title: text("title"), Evidence: text("evidence"), Who: text("culprit"), Fix: text("fix"),
		Command: f.doctor(host, id),
	}
}

func incidentLink(cluster, host, id string) string {
	a := asked{values: map[string][]string{}}
	a.keep("cluster", cluster)
	return a.link("/incident", "host", host, "id", id)
}

// doctor is the command that judges an incident by the recordings of all hosts.
func (f *Fleet) doctor(host, id string) string {
	source := f.o.Source
	if manyhosts.IsClickHouse(source) {
		source = "RECORDINGS" // their directory, or their bucket
	}
	return fmt.Sprintf("slowpath fleet %s doctor %s/%s", source, host, id)
}

// said is what a page says of an error of a part of it.
func (f *Fleet) said(r *http.Request, err error) string {
	if err == nil {
		return ""
	}
	_, said := f.failure(r, err)
	return "This could not be asked: " + bound(said)
}

// tableOf is an answer as a table, with links to what its cells name.
func (f *Fleet) tableOf(r *http.Request, one asking) fleetTable {
	t := fleetTable{
		Name: one.question.Name, Title: capital(one.question.About), Failure: f.said(r, one.err),
		More: one.asked.link("/ask/" + one.question.Name), Empty: "Nothing of this time.",
	}
	rows := one.answer.Rows
	columns := rows.ShownColumns()
	for _, column := range columns {
		t.Heads = append(t.Heads, fleetHead{capital(manyhosts.Head(column)), isNumber(rows, column)})
	}
	for _, row := range rows.Values {
		var cells []fleetCell
		for i, column := range columns {
			text := bound(rows.Shown(row, column))
			c := fleetCell{Head: t.Heads[i].Name, Text: cmp.Or(text, "–"), Right: t.Heads[i].Right}
			switch host, id := rows.Text(row, "host"), rows.Text(row, "id"); {
			case text == "":
			case column == "id" && host != "":
				c.Link = incidentLink(rows.Text(row, "cluster"), host, id)
			case column == "node", column == "caller", column == "cluster":
				c.Link = one.asked.link("/", column, rows.Text(row, column))
			}
			cells = append(cells, c)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// isNumber: the column is one of numbers, and no time.
func isNumber(rows manyhosts.Rows, column string) bool {
	return !strings.HasSuffix(column, "_unix_ns") && slices.ContainsFunc(rows.Values, func(row []any) bool {
		_, isText := row[slices.Index(rows.Columns, column)].(string)
		return !isText
	})
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// questionPage answers GET /ask/QUESTION.
func (f *Fleet) questionPage(w http.ResponseWriter, r *http.Request) error {
	q, ok := manyhosts.QuestionOf(r.PathValue("question"))
	if !ok {
		return notFound{"there is no question " + quoted(r.PathValue("question"))}
	}
	a, opened, err := f.begin(r, tableRows)
	if err != nil {
		return err
	}
	defer opened.Done()
	one := []asking{{question: q, asked: a}}
	f.all(r.Context(), opened.Source, one)
	v := struct {
		fleetView
		Table     fleetTable
		Questions []link
		SQL, JSON string
	}{
		fleetView: fleetView{fleetFrame: f.frame(r, &a)}, Table: f.tableOf(r, one[0]), SQL: q.SQL(),
		JSON: a.link("/api/v1/fleet/" + q.Name),
	}
	v.Title, v.Notes = v.Table.Title, one[0].answer.Notes
	if q.Name == "why" {
		v.Causes, v.Shared, _ = f.causesOf(r, one[0])
	}
	for _, other := range manyhosts.Questions {
		v.Questions = append(v.Questions, link{other.Name, a.link("/ask/" + other.Name), other.Name == q.Name})
	}
	return f.page(w, r, "fleet-question", "slowpath: "+v.Title, v)
}
