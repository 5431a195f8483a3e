package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
)

// incidentPage answers GET /incident?host=HOST&id=ID.
func (f *Fleet) incidentPage(w http.ResponseWriter, r *http.Request) error {
	a, err := f.ask(r, tableRows)
	if err != nil {
		return err
	}
	for name, to := range map[string]*string{"host": &a.filter.Host, "id": &a.filter.Incident} {
		if *to, err = textParameter(r, name, maxText); err != nil {
			return err
		}
	}
	if a.filter.Incident == "" || a.filter.Host == "" {
		return bad("give host=HOST and id=ID of an incident, such as 20261124T031207Z-1")
	}
	if begin, ok := incidentBegin(a.filter.Incident); ok {
		a.when = When{From: begin.Add(-time.Minute), To: begin.Add(time.Hour)}
	}
	opened, err := f.open(r.Context(), &a)
	if err != nil {
		return err
	}
	defer opened.Done()
	a.filter.From, a.filter.To = time.Unix(0, 0), time.Unix(0, math.MaxInt64) // its id says which it is
	of := func(name string, filter manyhosts.Filter) asking {
		q, _ := manyhosts.QuestionOf(name)
		return asking{question: q, asked: asked{tenant: a.tenant, filter: filter, values: a.values}}
	}
	each := []asking{
		of("incidents", a.filter), {question: manyhosts.Findings, asked: asked{tenant: a.tenant, filter: a.filter}},
	}
	f.all(r.Context(), opened.Source, each)
	if err := errors.Join(each[0].err, each[1].err); err != nil {
		return err
	}
	rows := each[0].answer.Rows
	if len(rows.Values) == 0 {
		return notFound{"there is no incident " + quoted(a.filter.Host+"/"+a.filter.Incident)}
	}
	row := rows.Values[0]
	begin := time.Unix(0, rows.Int(row, "at_unix_ns"))
	end := begin.Add(time.Duration(rows.Int(row, "duration_ns")))
	v := fleetView{fleetFrame: fleetFrame{
		Title: bound(rows.Text(row, "summary")), Source: f.o.Source,
		Class: classOf(incidents.Incident{Verdict: rows.Text(row, "verdict")}),
		Between: joined(rows.Text(row, "host"), when(begin)+" UTC, for "+
			format.Brief(end.Sub(begin).Round(time.Second)),
			format.Count(rows.Int(row, "slow"), "slow call")),
	}}
	v.Causes = f.findingsOf(each[1].answer.Rows, a.filter)
	v.Why = "No cause was found."
	// What else there was at that time: of all hosts.
	then := manyhosts.Filter{
		Cluster: a.filter.Cluster, From: begin.Add(-time.Hour), To: end, Limit: tableRows, Step: time.Minute,
	}
	during := then
	during.From, during.Limit = begin.Add(-time.Minute), overviewRows
	others := []asking{of("changes", then), of("incidents", during), of("worst", during), of("calls", during)}
	f.all(r.Context(), opened.Source, others)
	for i, title := range []string{
		"What was changed in the hour before", "Incidents at the same time", "Nodes at the same time",
		"The slowest calls at the same time",
	} {
		others[i].asked.values = map[string][]string{
			"from": {others[i].asked.filter.From.UTC().Format(time.RFC3339)}, "to": {end.UTC().Format(time.RFC3339)},
		}
		t := f.tableOf(r, others[i])
		t.Title = title
		v.Tables = append(v.Tables, t)
	}
	return f.page(w, r, "fleet-incident", "slowpath: "+v.Title, v)
}

// incidentBegin is when an incident of an agent began, by its id.
func incidentBegin(id string) (time.Time, bool) {
	if !incidentID.MatchString(id) {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102T150405Z", id[:16])
	return t, err == nil
}

// findingsOf are the causes of an incident.
func (f *Fleet) findingsOf(rows manyhosts.Rows, filter manyhosts.Filter) (out []fleetCause) {
	for _, row := range rows.Values {
		said := fmt.Sprintf("%s · %s of the lost time · confidence %s", rows.Text(row, "cause"),
			format.Percent(rows.Float(row, "excess_share")), format.Percent(rows.Float(row, "confidence")))
		if because := rows.Text(row, "because"); because != "" {
			said += " · because of " + because
		}
		one := f.causeOf(rows, row, filter.Host, filter.Incident)
		one.Said = said
		out = append(out, one)
	}
	return out
}
