// Package manyhosts answers questions about many hosts: from a folder of recordings, by SQL that is the same wherever
// the rows are.
package manyhosts

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Question is one that a fleet can be asked.
type Question struct {
	Name  string
	About string // what it answers, as a line of help
	// alone: its SQL does not begin with views.sql.
	alone bool
}

// Questions are all of them, in the order of a search for the reason.
var Questions = []Question{
	{Name: "worst", About: "which nodes have most slow calls, and since when"},
	{Name: "why", About: "why: the causes, and what those who suffer have in common"},
	{Name: "who", About: "which callers suffer most"},
	{Name: "since", About: "since when: the course of slow calls"},
	{Name: "changes", About: "what was changed", alone: true},
	{Name: "edges", About: "who calls whom"},
	{Name: "incidents", About: "what was judged, in order of time", alone: true},
	{Name: "calls", About: "the slowest calls, both ends as one", alone: true},
	{Name: "clocks", About: "how far the clocks of hosts are apart", alone: true},
}

// Findings asks what Filter.Incident of Filter.Host was judged to have, the first cause first. It is for pages.
var Findings = Question{Name: "findings", About: "what an incident was judged to have", alone: true}

// QuestionOf is that of a name.
func QuestionOf(name string) (Question, bool) {
	i := slices.IndexFunc(Questions, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return Question{}, false
	}
	return Questions[i], true
}

//go:embed sql/*.sql
var files embed.FS

func text(name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is in the program
	}
	return string(b)
}

// SQL is the question as a query. Parameters are written as ClickHouse does: {from:Int64}.
func (q Question) SQL() string {
	if q.alone {
		return text(q.Name)
	}
	return text("views") + text(q.Name)
}

// sharedSQL asks what those who suffer have in common.
func sharedSQL() string { return text("views") + text("shared") }

// Filter is what a question is about.
type Filter struct {
	From, To time.Time // of what began in [From, To)
	Cluster  string    // empty: all
	Node     string
	Caller   string
	Host     string        // of Incident
	Incident string        // empty: all
	Limit    int           // rows
	Step     time.Duration // of a course
	long     bool          // hours are asked, not minutes
}

// Step is the step of a course of at most so many rows.
func Step(span time.Duration, rows int) time.Duration {
	steps := []time.Duration{
		time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	}
	for _, step := range steps {
		if span/step < time.Duration(rows) {
			return step
		}
	}
	return steps[len(steps)-1]
}

// Parameters are the values of the parameters of a query.
func (f Filter) Parameters() map[string]any {
	long := int64(0)
	if f.long {
		long = 1
	}
	return map[string]any{
		"from": f.From.UnixNano(), "to": f.To.UnixNano(), "cluster": f.Cluster, "node": f.Node, "caller": f.Caller,
		"host": f.Host, "incident": f.Incident, "limit": int64(f.Limit), "step": int64(f.Step), "long": long,
	}
}

var parameter = regexp.MustCompile(`\{(\w+):\w+\}`)

// used are the parameters of a query, each once.
func used(sql string) (names []string) {
	for _, m := range parameter.FindAllStringSubmatch(sql, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Rows are the answer of an engine.
type Rows struct {
	Columns []string
	Values  [][]any // int64, float64 or string
}

// Source has the rows of a fleet.
type Source interface {
	// Query asks a query with parameters.
	Query(ctx context.Context, sql string, f Filter) (Rows, error)
	// Span is the time of all that it has.
	Span(ctx context.Context) (from, to time.Time, err error)
	Close() error
}

// Answer is what a source says to a question.
type Answer struct {
	Question Question
	Rows     Rows
	Shared   []Shared // of why
	Notes    []string
}

// LongTime is from when on a question is asked of hours where there are hours, from the begin of its first one.
const LongTime = 12 * time.Hour

// Ask asks a question.
func Ask(ctx context.Context, s Source, q Question, f Filter) (a Answer, err error) {
	a.Question = q
	f.long = f.To.Sub(f.From) >= LongTime && (q.Name != "since" || f.Step >= time.Hour)
	if a.Rows, err = s.Query(ctx, q.SQL(), f); err != nil {
		return a, fmt.Errorf("asking %s: %w", q.Name, err)
	}
	if len(a.Rows.Values) == f.Limit {
		a.Notes = append(a.Notes, fmt.Sprintf("there may be more: these are the first %d (--limit)", f.Limit))
	}
	if q.Name != "why" {
		return a, nil
	}
	rows, err := s.Query(ctx, sharedSQL(), f)
	if err != nil {
		return a, fmt.Errorf("asking what is shared: %w", err)
	}
	a.Shared = sharedOf(rows)
	return a, nil
}

// at is a value of a row by the name of its column; nil: there is none.
func (r Rows) at(row []any, column string) any {
	if i := slices.Index(r.Columns, column); i >= 0 {
		return row[i]
	}
	return nil
}

// Text is a value as a text.
func (r Rows) Text(row []any, column string) string {
	s, _ := r.at(row, column).(string)
	return s
}

// Int is a value as a whole number.
func (r Rows) Int(row []any, column string) int64 {
	switch v := r.at(row, column).(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

// Float is a value as a number.
func (r Rows) Float(row []any, column string) float64 {
	if v, ok := r.at(row, column).(float64); ok {
		return v
	}
	return float64(r.Int(row, column))
}

// statements are those of a script, without its comments.
func statements(script string) (out []string) {
	for one := range strings.SplitSeq(script, ";\n") {
		var lines []string
		for line := range strings.Lines(one) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if s := strings.TrimSpace(strings.Join(lines, "")); s != "" {
			out = append(out, strings.TrimSuffix(s, ";"))
		}
	}
	return out
}
