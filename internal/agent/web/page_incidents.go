package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report"
)

// incidentRow is a line of a list.
type incidentRow struct {
	ID, Start, When, Lasted, What, Facts, SlowCalls, Failed, State, Class string
}

func (s *Server) incidentRows(all []incidents.Incident) []incidentRow {
	rows := make([]incidentRow, 0, len(all))
	for _, one := range all {
		row := incidentRow{
			ID: one.ID, Start: one.Start.UTC().Format(time.RFC3339), When: when(one.Start), Lasted: lasted(one),
			What: whatOf(one), SlowCalls: format.Thousands(one.SlowCalls), State: stateOf(one), Class: classOf(one),
			Facts: joined(one.Cause, one.Target, "because "+report.PageText(one.Trigger)),
		}
		if one.FailedCalls > 0 {
			row.Failed = format.Thousands(one.FailedCalls) + " failed"
		}
		rows = append(rows, row)
	}
	return rows
}

// joined are facts on one line, without those that are empty.
func joined(facts ...string) string {
	var out []string
	for _, f := range facts {
		if f != "" && f != "because " {
			out = append(out, f)
		}
	}
	return strings.Join(out, " · ")
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// lasted is how long an incident took.
func lasted(one incidents.Incident) string {
	if one.End.IsZero() {
		return "goes on"
	}
	return "for " + format.Brief(one.End.Sub(one.Start).Round(time.Second))
}

// whatOf is an incident in one sentence.
func whatOf(one incidents.Incident) string {
	switch {
	case one.Summary != "":
		return report.PageText(one.Summary)
	case one.State == incidents.StateFailed:
		return "It could not be judged: " + one.Error
	case one.Trigger != "":
		return one.Trigger
	}
	return one.ID
}

func stateOf(one incidents.Incident) string {
	if one.State == incidents.StateJudged {
		switch one.Verdict {
		case verdict.Findings:
			return "cause found"
		case verdict.Healthy:
			return "nothing slow"
		case verdict.Inconclusive:
			return "cause not seen"
		}
	}
	switch one.State {
	case incidents.StateWatching:
		return "goes on"
	case incidents.StateJudging:
		return "being judged"
	case incidents.StateFailed:
		return "not judged"
	}
	return one.State
}

// classOf gives a class only to what the program itself calls so.
func classOf(one incidents.Incident) string {
	if one.State == incidents.StateWatching {
		return verdict.Findings
	}
	switch one.Verdict {
	case verdict.Healthy, verdict.Findings, verdict.Inconclusive:
		return one.Verdict
	}
	return verdict.Inconclusive
}

// incidentsPage answers GET /incidents and /search.
func (s *Server) incidentsPage(w http.ResponseWriter, r *http.Request) error {
	found, q, err := s.find(r, pageOfIncidents)
	if err != nil {
		return err
	}
	values := url.Values{}
	for _, name := range []string{"q", "from", "to"} {
		if v := r.URL.Query().Get(name); v != "" {
			values.Set(name, v)
		}
	}
	v := struct {
		Query, From, To, First, Next string
		Incidents                    []incidentRow
		Earlier, Searched            bool
	}{
		Query: q.Text, From: values.Get("from"), To: values.Get("to"), First: "/incidents?" + values.Encode(),
		Incidents: s.incidentRows(found.Incidents), Earlier: q.Before != "", Searched: len(values) > 0,
	}
	if found.Next != "" {
		values.Set("before", found.Next)
		v.Next = "/incidents?" + values.Encode()
	}
	return s.page(w, r, "incidents", "slowpath: incidents", v)
}

// section is a part of the report, by its id there.
type section struct{ ID, Name string }

type incidentView struct {
	ID, When, Lasted, Facts, Class, Why, Size, State string
	HasReport, HasRecording, Wait                    bool
	Sections                                         []section
}

// incidentPage answers GET /incidents/ID.
func (s *Server) incidentPage(w http.ResponseWriter, r *http.Request) error {
	one, err := s.incident(r)
	if err != nil {
		return err
	}
	v := incidentView{
		ID: one.ID, When: when(one.Start), Lasted: lasted(one), Class: classOf(one), State: one.State,
		Facts: joined(stateOf(one), one.Target, "because "+report.PageText(one.Trigger)),
		Wait:  one.State == incidents.StateWatching || one.State == incidents.StateJudging,
	}
	v.HasReport = s.has(one.ID, incidents.ReportFile)
	if v.HasRecording = s.has(one.ID, incidents.RecordingFile); v.HasRecording {
		v.Size = format.Bytes(one.RecordingBytes)
	}
	if v.HasReport {
		v.Sections = s.sectionsOf(one.ID)
	} else {
		v.Why = notJudged(one)
		v.Why = strings.ToUpper(v.Why[:1]) + v.Why[1:]
	}
	return s.page(w, r, "incident", fmt.Sprintf("slowpath: %s %s", when(one.Start), whatOf(one)), v)
}

// reportSections are the parts of a report that can be linked to (internal/report/page.html).
var reportSections = []section{
	{"causes", "Causes"},
	{"lost", "Lost time"},
	{"hops", "Hops"},
	{"heat", "Over time"},
	{"states", "Where it passed"},
	{"worst", "Worst calls"},
	{"callers", "Callers"},
	{"oncpu", "On the CPU"},
	{"unseen", "Not seen"},
	{"cost", "Cost"},
}

// sectionsOf are the parts that the report of an incident has; an older version may have made it.
func (s *Server) sectionsOf(id string) (out []section) {
	f, err := s.o.Store.OpenFile(id, incidents.ReportFile)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 4 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	for _, of := range reportSections {
		if bytes.Contains(text, []byte(`<section id="`+of.ID+`">`)) {
			out = append(out, of)
		}
	}
	return out
}

// has: the store has such a file of an incident.
func (s *Server) has(id, name string) bool {
	in, err := s.o.Store.Folder(id)
	if err != nil {
		return false
	}
	defer in.Close()
	info, err := in.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
