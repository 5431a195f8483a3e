package web

import (
	"bytes"
	"net/http"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/live"
	"slowpath/internal/report/layout"
)

// OverviewSchema names the document of /api/v1/overview.
const OverviewSchema = "slowpath.overview/v1"

// Overview is latency over time, with the incidents and marks of that time.
type Overview struct {
	Schema          string    `json:"schema"`
	From            time.Time `json:"from"`
	To              time.Time `json:"to"`
	StepSeconds     int64     `json:"step_seconds"`
	Whose           string    `json:"whose"` // users or own, as live.Whose
	Node            string    `json:"node"`  // that was chosen; empty: all
	Nodes           []string  `json:"nodes"`
	SlowThresholdNs int64     `json:"slow_threshold_ns"`
	// UpToNs are the upper ends of the rows of Column.Counts; the last one has all that is longer, too.
	UpToNs    []int64              `json:"up_to_ns"`
	Columns   []Column             `json:"columns"`
	Incidents []incidents.Incident `json:"incidents"` // the newest first
	More      bool                 `json:"more_incidents"`
	Marks     []incidents.Mark     `json:"marks"`
}

// Column is all calls that ended in one step.
type Column struct {
	Start time.Time `json:"start"`
	// Seen is in how many seconds of the step something was counted, slowpath's own calls too; 0: nothing was watched.
	Seen   int64   `json:"seen_seconds"`
	Calls  int64   `json:"calls"`
	Slow   int64   `json:"slow"`
	Failed int64   `json:"failed"`
	P50Ns  int64   `json:"p50_ns"`
	P99Ns  int64   `json:"p99_ns"`
	MaxNs  int64   `json:"max_ns"`
	Counts []int64 `json:"counts"` // by row; empty where there were no calls
}

const (
	defaultColumns     = 180
	maxColumns         = 400
	overviewIncidents  = 200
	overviewMarks      = 200
	defaultSpan        = time.Hour
	secondsPerMinute   = 60
	secondsUntilMinute = 3 * secondsPerMinute // after its end a minute is in the history, surely
)

// steps are the lengths of a column in seconds.
var steps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400}

// rowsUpToNs are the upper ends of the rows: three for each power of ten, as in reports.
var rowsUpToNs = func() (out []int64) {
	for of := int64(10e3); of < 10e9; of *= 10 {
		out = append(out, of, 2*of, 5*of)
	}
	return out
}()

// view is what of the time is asked for.
type view struct {
	from, to int64 // Unix seconds, multiples of step
	step     int64
	node     string
	whose    live.Whose // empty: users where there are any, else own
}

// overviewParameters reads from, to, range, columns, node and whose.
func (s *Server) overviewParameters(r *http.Request) (v view, err error) {
	now := s.o.Now()
	span, err := durationParameter(r, "range", time.Second, maxSpan, defaultSpan)
	if err != nil {
		return v, err
	}
	to, err := timeParameter(r, "to")
	if err != nil {
		return v, err
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	from, err := timeParameter(r, "from")
	if err != nil {
		return v, err
	}
	if from.IsZero() {
		from = to.Add(-span)
	}
	columns, err := intParameter(r, "columns", 1, maxColumns, defaultColumns)
	if err != nil {
		return v, err
	}
	switch {
	case !from.Before(to):
		return v, bad("from is not before to")
	case to.Sub(from) > maxSpan:
		return v, bad("from and to are more than %d days apart", maxSpan/(24*time.Hour))
	}
	if v.node, err = textParameter(r, "node", maxQuery); err != nil {
		return v, err
	}
	switch v.whose = live.Whose(r.URL.Query().Get("whose")); v.whose {
	case "", live.Users, live.Own:
	default:
		return v, bad("whose is users or own")
	}
	v.step = s.stepFor(from, to, columns)
	v.from, v.to = from.Unix()/v.step*v.step, (to.Unix()+v.step-1)/v.step*v.step
	return v, nil
}

// stepFor is the shortest step with which the time fits into so many columns, and one more for the rounding. Seconds
// are kept for minutes only: what began before them is shown by the minute.
func (s *Server) stepFor(from, to time.Time, columns int) int64 {
	for _, step := range steps {
		if step < secondsPerMinute && from.Before(s.o.Now().Add(-live.DefaultKeep-time.Minute)) {
			continue
		}
		if (to.Unix()+step-1)/step-from.Unix()/step <= int64(columns)+1 { // rounded to whole steps
			return step
		}
	}
	return steps[len(steps)-1]
}

// overview answers /api/v1/overview.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) error {
	v, err := s.overviewParameters(r)
	if err != nil {
		return err
	}
	if body, ok := s.overviews.get(v, s.o.Now()); ok {
		sendBytes(w, http.StatusOK, "application/json", body)
		return nil
	}
	o, err := s.overviewOf(v)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := layout.JSONLine(&buf, "the overview", o); err != nil {
		return err
	}
	s.overviews.keep(v, s.o.Now(), buf.Bytes())
	sendBytes(w, http.StatusOK, "application/json", buf.Bytes())
	return nil
}

// overviewOf makes the document.
func (s *Server) overviewOf(v view) (Overview, error) {
	columns, err := s.columnsOf(v)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{
		Schema: OverviewSchema, From: time.Unix(v.from, 0).UTC(), To: time.Unix(v.to, 0).UTC(), StepSeconds: v.step,
		Node: v.node, Nodes: s.nodes(), SlowThresholdNs: int64(s.o.View.Threshold()), UpToNs: rowsUpToNs,
		Incidents: boundIncidents(s.o.Store.List(incidents.Query{
			From: time.Unix(v.from, 0), To: time.Unix(v.to, 0), Limit: overviewIncidents + 1,
		})),
		Marks: boundMarks(s.o.Store.Marks(time.Unix(v.from, 0), time.Unix(v.to, 0))),
	}
	if len(o.Incidents) > overviewIncidents {
		o.Incidents, o.More = o.Incidents[:overviewIncidents], true
	}
	whose := v.whose
	if whose == "" {
		whose = live.Own
		for _, c := range columns {
			if c.users.Calls+c.users.Failed > 0 {
				whose = live.Users
				break
			}
		}
	}
	o.Whose = string(whose)
	for _, c := range columns {
		o.Columns = append(o.Columns, c.of(whose))
	}
	return o, nil
}

// nodes are those that are watched now.
func (s *Server) nodes() []string {
	out := listed(s.o.View.Nodes(), maxListed)
	for i := range out {
		out[i] = bound(out[i])
	}
	return out
}

// boundIncidents are incidents whose texts are short and safe to show.
func boundIncidents(all []incidents.Incident) []incidents.Incident {
	out := make([]incidents.Incident, len(all))
	for i, one := range all {
		one.Cause, one.Summary, one.Trigger = bound(one.Cause), bound(one.Summary), bound(one.Trigger)
		one.Target, one.Error = bound(one.Target), bound(one.Error)
		one.Verdict, one.State = bound(one.Verdict), bound(one.State)
		one.Nodes, one.Callers = boundTexts(one.Nodes), boundTexts(one.Callers)
		one.OtherCauses = boundTexts(one.OtherCauses)
		out[i] = one
	}
	return out
}

// boundTexts are texts of others, each short and safe to show.
func boundTexts(all []string) []string {
	out := make([]string, 0, len(all))
	for _, text := range all[:min(len(all), maxListed)] {
		out = append(out, bound(text))
	}
	return out
}

// boundMarks are the newest marks, the oldest of them first.
func boundMarks(all []incidents.Mark) []incidents.Mark {
	out := make([]incidents.Mark, 0, min(len(all), overviewMarks))
	for _, m := range all[max(len(all)-overviewMarks, 0):] {
		out = append(out, incidents.Mark{Time: m.Time, Text: bound(m.Text)})
	}
	return out
}
