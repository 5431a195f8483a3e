package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/report"
)

type compareView struct {
	Title, Class, Failure, Kept, Mark, Address string
	Token                                      bool
	Result                                     *comparedView
	Marks                                      []markChoice
	Windows, Incidents                         []choice
}

// comparedView is a comparison that was made.
type comparedView struct {
	Sides  []comparedSide
	Tables []comparedTable
}

type comparedSide struct{ Name, Link, Said, Summary string }

type comparedTable struct {
	Title string
	Rows  []comparedRow
}

type comparedRow struct{ Class, Name, Before, After, Note string }

type markChoice struct{ Path, Said string }

type choice struct {
	Value, Name string
	Here        bool
}

const (
	shownMarks   = 20
	shownChoices = 50
	maxTableRows = 200
)

var windowNames = []choice{
	{Value: "1m", Name: "1 min"},
	{Value: "5m", Name: "5 min"},
	{Value: "15m", Name: "15 min"},
	{Value: "1h", Name: "1 h"},
}

// comparePage answers GET /compare, with the comparison that its parameters ask for.
func (s *Server) comparePage(w http.ResponseWriter, r *http.Request) error {
	v := compareView{Title: "Compare before and after", Address: s.address(), Token: len(s.access.tenants) > 0}
	code := http.StatusOK
	if q := r.URL.Query(); len(q) > 0 {
		k, body, err := s.compareNow(w, r)
		if err == nil {
			var c compare.Comparison
			if c, err = comparison(body); err == nil {
				v.Title, v.Class, v.Result = s.titleOf(k, c, q), comparedClass(c.Verdict), s.comparedOf(k, c)
			}
		}
		if err != nil {
			code, v.Failure = s.failure(r, err)
			v.Failure = bound(v.Failure)
		}
	}
	s.choices(&v, r.URL.Query())
	return s.pageWith(w, r, code, "compare", "slowpath: "+v.Title, v)
}

// titleOf is the sentence of a comparison; since a mark it says since what.
func (s *Server) titleOf(k sides, c compare.Comparison, q url.Values) string {
	said := report.PageText(bound(c.Summary))
	if q.Get("mark") == "" {
		return said
	}
	said = strings.TrimPrefix(strings.TrimPrefix(said, "Worse: "), "Better: ") // it is said otherwise
	since := time.Unix(k.after.from, 0).UTC()
	name := ""
	for _, m := range boundMarks(s.o.Store.Marks(since, since.Add(time.Second))) {
		name = ", " + m.Text
	}
	switch c.Verdict {
	case compare.Worse:
		return fmt.Sprintf("Regressed since %s%s: %s", since.Format("15:04:05"), name, said)
	case compare.Better:
		return fmt.Sprintf("Better since %s%s: %s", since.Format("15:04:05"), name, said)
	}
	return fmt.Sprintf("Since %s%s: %s", since.Format("15:04:05"), name, said)
}

// comparedClass gives a class only to what the program itself calls so.
func comparedClass(said string) string {
	switch said {
	case compare.Better:
		return "healthy"
	case compare.Worse:
		return "findings"
	}
	return "inconclusive"
}

func rowClass(change string) string {
	switch change {
	case compare.Better, compare.Worse:
		return change
	}
	return ""
}

func (s *Server) comparedOf(k sides, c compare.Comparison) *comparedView {
	v := &comparedView{}
	for _, one := range []struct {
		name  string
		side  side
		watch compare.Watch
	}{{"Before", k.before, c.Before}, {"After", k.after, c.After}} {
		shown := comparedSide{Name: one.name, Summary: bound(one.watch.Summary)}
		if one.side.incident != "" {
			shown.Link, shown.Said = "/incidents/"+one.side.incident, "incident "+one.side.incident
		} else {
			from, to := time.Unix(one.side.from, 0).UTC(), time.Unix(one.side.to, 0).UTC()
			shown.Said = from.Format("2006-01-02 15:04:05") + " to " + to.Format("15:04:05")
		}
		v.Sides = append(v.Sides, shown)
	}
	for _, t := range report.ComparedTables(c) {
		table := comparedTable{Title: t.Title}
		if table.Title == "" {
			table.Title = whoseCalls(c.Population)
		}
		for _, row := range listed(t.Rows, maxTableRows) {
			table.Rows = append(table.Rows, comparedRow{
				rowClass(row.Change), bound(row.Name), bound(row.Before), bound(row.After), bound(row.Note),
			})
		}
		v.Tables = append(v.Tables, table)
	}
	for _, d := range []struct {
		title string
		all   []compare.Difference
	}{{"Versions that differ", c.Versions}, {"Settings that differ", c.Settings}} {
		table := comparedTable{Title: d.title}
		for _, one := range listed(d.all, maxTableRows) {
			table.Rows = append(table.Rows, comparedRow{
				Name: bound(one.Name), Before: bound(orNone(one.Before)), After: bound(orNone(one.After)),
			})
		}
		if len(table.Rows) > 0 {
			v.Tables = append(v.Tables, table)
		}
	}
	return v
}

func whoseCalls(population string) string {
	switch population {
	case "users":
		return "Your calls"
	case "probe":
		return "slowpath's own calls"
	}
	return "Calls"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// choices are what can be compared.
func (s *Server) choices(v *compareView, q url.Values) {
	now, kept := s.o.Now(), s.o.Health().Ring
	v.Kept = "Nothing is kept in full detail yet."
	if !kept.From.IsZero() {
		v.Kept = fmt.Sprintf("Windows can be chosen from %s on: so far back all is kept in full detail.",
			kept.From.UTC().Format("2006-01-02 15:04:05"))
	}
	window := q.Get("window")
	if window == "" {
		window = "5m"
	}
	for _, c := range windowNames {
		c.Here = c.Value == window
		v.Windows = append(v.Windows, c)
	}
	if v.Mark = bound(q.Get("mark")); len(v.Mark) > len(time.RFC3339)+10 {
		v.Mark = ""
	}
	marks := boundMarks(s.o.Store.Marks(now.Add(-24*time.Hour), now.Add(time.Minute)))
	for i := len(marks) - 1; i >= 0 && len(v.Marks) < shownMarks; i-- {
		m := marks[i]
		one := markChoice{Said: m.Time.UTC().Format("15:04:05") + " " + m.Text}
		if window := windowAt(m.Time, kept.From, now); window > 0 {
			one.Path = "/compare?" + url.Values{
				"mark": {m.Time.UTC().Format(time.RFC3339)}, "window": {window.String()},
			}.Encode()
		}
		v.Marks = append(v.Marks, one)
	}
	for _, one := range boundIncidents(s.o.Store.List(incidents.Query{Limit: shownChoices})) {
		if one.RecordingBytes > 0 {
			v.Incidents = append(v.Incidents, choice{
				one.ID, when(one.Start) + " " + shortened(whatOf(one)), one.ID == q.Get("before"),
			})
		}
	}
}

// windowAt is how long before and after a mark can be compared: five minutes where there are as many.
func windowAt(mark, kept, now time.Time) time.Duration {
	if kept.IsZero() || now.Sub(mark) < minWindow {
		return 0
	}
	window := min(defaultWindow, mark.Sub(kept)).Truncate(time.Second)
	if window < minWindow {
		return 0
	}
	return window
}

func shortened(s string) string {
	const most = 80
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// address is where this server is, for commands.
func (s *Server) address() string {
	scheme := "http"
	if s.o.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + strings.TrimPrefix(s.o.Listen, ":")
}
