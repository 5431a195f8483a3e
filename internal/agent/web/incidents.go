package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/report"
	"slowpath/internal/source/hostfs"
)

// Names of the documents about incidents.
const (
	IncidentsSchema = "slowpath.incidents/v1"
	TriggeredSchema = "slowpath.triggered/v1" // of POST /api/v1/incidents
	MarksSchema     = "slowpath.marks/v1"
)

// Incidents is a list of incidents, the newest first.
type Incidents struct {
	Schema    string               `json:"schema"`
	Incidents []incidents.Incident `json:"incidents"`
	// Next is the value of the parameter before that gives the next page; absent on the last one.
	Next string `json:"next,omitempty"`
}

// Triggered is an incident that was asked for.
type Triggered struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
}

// Marks are what somebody did, such as deploys, the oldest first.
type Marks struct {
	Schema string           `json:"schema"`
	Marks  []incidents.Mark `json:"marks"`
}

// pageOfIncidents is how many incidents a page has.
const pageOfIncidents = 50

// find reads from, to, q, limit and before, and gives a page of incidents.
func (s *Server) find(r *http.Request, otherwise int) (out Incidents, q incidents.Query, err error) {
	out.Schema = IncidentsSchema
	if q.From, err = timeParameter(r, "from"); err != nil {
		return out, q, err
	}
	if q.To, err = timeParameter(r, "to"); err != nil {
		return out, q, err
	}
	if q.Text, err = textParameter(r, "q", maxQuery); err != nil {
		return out, q, err
	}
	limit, err := intParameter(r, "limit", 1, incidents.MaxLimit-1, otherwise)
	if err != nil {
		return out, q, err
	}
	if q.Before = r.URL.Query().Get("before"); q.Before != "" && !incidentID.MatchString(q.Before) {
		return out, q, bad("before=%s is no id of an incident", quoted(q.Before))
	}
	q.Limit = limit + 1
	all := s.o.Store.List(q)
	if len(all) > limit {
		all = all[:limit]
		out.Next = all[limit-1].ID
	}
	q.Limit = limit
	out.Incidents = boundIncidents(all)
	return out, q, nil
}

// incidents answers GET /api/v1/incidents.
func (s *Server) incidents(w http.ResponseWriter, r *http.Request) error {
	found, _, err := s.find(r, incidents.DefaultLimit)
	if err != nil {
		return err
	}
	sendJSON(w, http.StatusOK, found)
	return nil
}

// incident is the one of the path.
func (s *Server) incident(r *http.Request) (incidents.Incident, error) {
	id := r.PathValue("id")
	if !incidentID.MatchString(id) {
		return incidents.Incident{}, notFound{fmt.Sprintf("%s is no id of an incident", quoted(id))}
	}
	one, ok := s.o.Store.Get(id)
	if !ok {
		return one, notFound{"there is no incident " + id + ": it was removed, or never there"}
	}
	return boundIncidents([]incidents.Incident{one})[0], nil
}

// notFound is an error about what is not there.
type notFound struct{ said string }

func (e notFound) Error() string { return e.said }

// diagnosis answers GET /api/v1/incidents/ID.
func (s *Server) diagnosis(w http.ResponseWriter, r *http.Request) error {
	one, err := s.incident(r)
	if err != nil {
		return err
	}
	body, err := s.o.Store.Diagnosis(one.ID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return notFound{notJudged(one)}
	case err != nil:
		return err
	}
	sendBytes(w, http.StatusOK, "application/json", body)
	return nil
}

// notJudged says why an incident has no verdict.
func notJudged(one incidents.Incident) string {
	switch one.State {
	case incidents.StateWatching:
		return "this incident is still watched: it is judged soon after its end"
	case incidents.StateJudging:
		return "this incident is being judged: try again in a few seconds"
	case incidents.StateFailed:
		return "this incident could not be judged: " + one.Error
	}
	return "this incident has no verdict"
}

// recording answers GET /api/v1/incidents/ID/recording.
func (s *Server) recording(w http.ResponseWriter, r *http.Request) error {
	one, err := s.incident(r)
	if err != nil {
		return err
	}
	path, err := s.o.Store.RecordingPath(one.ID)
	if err != nil {
		return notFound{"this incident has no recording"}
	}
	w.Header().Set("Content-Disposition", `attachment; filename="slowpath-`+one.ID+`.slowpath"`)
	return sendFile(w, r, path, "application/vnd.sqlite3", "this incident has no recording yet")
}

// reportPolicy keeps a report, which is made of what others said, apart from the pages: in a sandbox it has no origin,
// cannot read cookies or ask the API, and no script but its own runs. Its styles are attributes of its elements.
var reportPolicy = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; default-src 'none'; " +
	"style-src 'unsafe-inline'; " + report.ScriptPolicy() + "; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'self'"

// report answers GET /api/v1/incidents/ID/report, with ?download=1 as a file to keep.
func (s *Server) report(w http.ResponseWriter, r *http.Request) error {
	one, err := s.incident(r)
	if err != nil {
		return err
	}
	path, err := s.o.Store.ReportPath(one.ID)
	if err != nil {
		return notFound{notJudged(one)}
	}
	h := w.Header()
	h.Set("Content-Security-Policy", reportPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	if r.URL.Query().Get("download") != "" {
		h.Set("Content-Disposition", `attachment; filename="slowpath-`+one.ID+`.html"`)
	}
	return sendFile(w, r, path, "text/html; charset=utf-8", notJudged(one))
}

// sendFile sends a regular file, part by part, each within the time of a reply; absent says what it means that there is
// none.
func sendFile(w http.ResponseWriter, r *http.Request, path, kind, absent string) error {
	f, err := hostfs.Root{}.OpenRegular(path, false)
	switch {
	case errors.Is(err, os.ErrNotExist):
		w.Header().Del("Content-Disposition")
		return notFound{absent}
	case err != nil:
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	out := http.NewResponseController(w)
	if err := out.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	const part = 256 << 10
	for left := info.Size(); left > 0; left -= part {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := io.CopyN(w, f, min(left, part)); err != nil {
			return nil // it has gone, or the file became shorter: the length tells
		}
	}
	return nil
}

// trigger answers POST /api/v1/incidents and POST /incidents: it begins an incident.
func (s *Server) trigger(w http.ResponseWriter, r *http.Request) error {
	if s.o.Trigger == nil {
		return notFound{"this agent saves no incidents"}
	}
	var asked struct {
		Reason string `json:"reason"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	reason := bound(asked.Reason)
	switch {
	case len(asked.Reason) > maxReason:
		return bad("reason is longer than %d bytes", maxReason)
	case reason == "":
		reason = "asked for by POST /incidents"
	}
	id, err := s.o.Trigger(reason)
	if err != nil {
		return conflict{err}
	}
	s.overviews.forget()
	w.Header().Set("Location", "/incidents/"+id)
	sendJSON(w, http.StatusAccepted, Triggered{TriggeredSchema, id})
	return nil
}

// conflict is an error of the state in which the agent is.
type conflict struct{ error }

// readJSON reads the body of a request; an empty one changes nothing.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &long):
		return bad("the body is longer than %d bytes", maxBodyBytes)
	case err != nil:
		return bad("the body is not the JSON that is expected: %v", err)
	case d.More():
		return bad("there is more than one JSON document in the body")
	}
	return nil
}

// marks answers GET /api/v1/marks.
func (s *Server) marks(w http.ResponseWriter, r *http.Request) error {
	from, err := timeParameter(r, "from")
	if err != nil {
		return err
	}
	to, err := timeParameter(r, "to")
	if err != nil {
		return err
	}
	if to.IsZero() {
		to = s.o.Now().Add(time.Hour)
	}
	sendJSON(w, http.StatusOK, Marks{MarksSchema, boundMarks(s.o.Store.Marks(from, to))})
	return nil
}

// mark answers POST /api/v1/marks: CI says that it deployed something.
func (s *Server) mark(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Time string `json:"time"`
		Text string `json:"text"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	m := incidents.Mark{Time: s.o.Now().UTC(), Text: bound(asked.Text)}
	switch {
	case m.Text == "":
		return bad(`the body has no text: send {"text":"deploy of shop 1.2.3"}`)
	case len(asked.Text) > maxMark:
		return bad("text is longer than %d bytes", maxMark)
	}
	if asked.Time != "" {
		t, err := parseTime("time", asked.Time)
		if err != nil {
			return err
		}
		if t.After(s.o.Now().Add(time.Minute)) {
			return bad("time is in the future")
		}
		m.Time = t
	}
	if err := s.o.Store.Mark(m); err != nil {
		return err
	}
	if s.o.Mark != nil {
		s.o.Mark(m)
	}
	s.overviews.forget()
	sendJSON(w, http.StatusCreated, Marks{MarksSchema, []incidents.Mark{m}})
	return nil
}
