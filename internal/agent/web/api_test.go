package web_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/verdict"
)

// TestIncidentsOfTheAPI: incidents are listed, found and paged; each has its diagnosis, its recording and its report.
func TestIncidentsOfTheAPI(t *testing.T) {
	w := sharedWorld(t)
	s := start(t, w.options())
	var all web.Incidents
	s.document("/api/v1/incidents", web.IncidentsSchema, &all)
	if len(all.Incidents) != len(past) || all.Next != "" || all.Incidents[0].Cause != "server-cfs-throttled" {
		t.Fatalf("%d incidents, next %q: %+v", len(all.Incidents), all.Next, all.Incidents[0])
	}
	var seen []string
	for next := ""; ; {
		var page web.Incidents
		s.document("/api/v1/incidents?limit=3&before="+next, web.IncidentsSchema, &page)
		for _, one := range page.Incidents {
			seen = append(seen, one.ID)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if len(seen) != len(past) || seen[0] != all.Incidents[0].ID || seen[len(past)-1] != all.Incidents[len(past)-1].ID {
		t.Errorf("by pages: %q", seen)
	}
	for q, want := range map[string]string{
		"cfs": "server-cfs-throttled", "SIGUSR1": "healthy-mixed", "41+calls": "server-unavailable",
		"hot-shard": "hot-shard-or-hot-key", "nobody-calls-this": "",
	} {
		var found web.Incidents
		s.document("/api/v1/incidents?q="+q, web.IncidentsSchema, &found)
		if want == "" && len(found.Incidents) == 0 {
			continue
		}
		if want == "" || len(found.Incidents) == 0 || found.Incidents[0].ID != w.ids[want] {
			t.Errorf("q=%s: %+v, want %s", q, found.Incidents, want)
		}
	}
	id := w.ids["server-cfs-throttled"]
	var d verdict.Diagnosis
	s.document("/api/v1/incidents/"+id, verdict.Schema, &d)
	if d.Findings[0].Cause != "server-cfs-throttled" || len(d.Callers) == 0 {
		t.Errorf("%+v", d)
	}
	var byCaller web.Incidents
	s.document("/api/v1/incidents?q="+d.Callers[0].Name, web.IncidentsSchema, &byCaller)
	if len(byCaller.Incidents) == 0 {
		t.Errorf("none is found by its caller %s", d.Callers[0].Name)
	}
	path, err := w.store.RecordingPath(id)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := s.ask("GET", "/api/v1/incidents/"+id+"/recording", "")
	if got.code != 200 || !bytes.Equal([]byte(got.body), want) ||
		got.header.Get("Content-Disposition") != `attachment; filename="slowpath-`+id+`.slowpath"` {
		t.Errorf("the recording: %d, %d bytes of %d, %v", got.code, len(got.body), len(want), got.header)
	}
}

// TestReportIsApart: a report, which is made of what others said, is shown without the rights of the pages.
func TestReportIsApart(t *testing.T) {
	w := emptyWorld(t)
	id := w.judged(t, "lb-hop", "99 calls of 10 s were slow", w.now.Add(-time.Hour))
	s := start(t, w.options())
	at := "/api/v1/incidents/" + id + "/report"
	got := s.ask("GET", at, "")
	csp := got.header.Get("Content-Security-Policy")
	for _, want := range []string{
		"sandbox allow-scripts", "default-src 'none'", "script-src 'sha256-", "frame-ancestors 'self'",
	} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %s", csp, want)
		}
	}
	for _, not := range []string{"allow-same-origin", "script-src 'unsafe", "allow-top-navigation", "allow-forms"} {
		if strings.Contains(csp, not) {
			t.Errorf("the policy has %s", not)
		}
	}
	if got.code != 200 || !strings.Contains(got.body, "<h1 class=\"verdict findings\">") ||
		got.header.Get("X-Frame-Options") != "SAMEORIGIN" {
		t.Errorf("%d %v", got.code, got.header)
	}
	if d := s.ask("GET", at+"?download=1", ""); !strings.HasPrefix(d.header.Get("Content-Disposition"), "attachment;") {
		t.Errorf("the file: %v", d.header)
	}
	// A link in the way of a report leads nowhere.
	path, err := w.store.ReportPath(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if got := s.ask("GET", at, ""); got.code == 200 || strings.Contains(got.body, "root:") {
		t.Errorf("through a link: %d %.100s", got.code, got.body)
	}
}

// TestIncidentThatGoesOn: one that is not judged yet has a page, and an error that says so.
func TestIncidentThatGoesOn(t *testing.T) {
	w := emptyWorld(t)
	s := start(t, w.options())
	got := s.ask("POST", "/api/v1/incidents", `{"reason":"asked by a test"}`, "Content-Type: application/json")
	var made web.Triggered
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.code != 202 ||
		got.header.Get("Location") != "/incidents/"+made.ID {
		t.Fatalf("%d %s", got.code, got.body)
	}
	for _, of := range []string{"", "/recording", "/report"} {
		got := s.ask("GET", "/api/v1/incidents/"+made.ID+of, "")
		if got.code != 404 || got.failure(t) == "" || got.header.Get("Content-Disposition") != "" {
			t.Errorf("%s: %d %s", of, got.code, got.body)
		}
	}
	page := s.ask("GET", "/incidents/"+made.ID, "")
	if page.code != 200 || !strings.Contains(page.body, "still watched") {
		t.Errorf("%d %s", page.code, page.body)
	}
	if page := s.ask("GET", "/", ""); !strings.Contains(page.body, "asked by a test</a></h1>") {
		t.Error("the overview does not begin with it")
	}
	one, _ := w.store.Get(made.ID)
	one.Verdict, one.Cause, one.Summary = verdict.Findings, "slow-command", "KEYS takes long."
	if err := w.store.Update(one); err != nil {
		t.Fatal(err)
	}
	if page := s.ask("GET", "/", ""); !strings.Contains(page.body, "KEYS takes long.</a></h1>") {
		t.Error("the overview does not begin with its first verdict")
	}
	if err := w.store.Fail(made.ID, "judging ran out of memory"); err != nil {
		t.Fatal(err)
	}
	if page := s.ask("GET", "/incidents/"+made.ID, ""); !strings.Contains(page.body, "ran out of memory") {
		t.Errorf("%s", page.body)
	}
}

// TestOverviewCounts: the columns have all calls of the history and of the last minutes, once.
func TestOverviewCounts(t *testing.T) {
	w := sharedWorld(t)
	s := start(t, w.options())
	for query, want := range map[string]int64{ // columns that had calls, at least
		"range=15m": 60, "range=1h": 50, "range=6h": 100, "range=24h": 100, "range=7d": 20,
	} {
		for _, again := range []bool{false, true} { // from what is kept the second time
			var o web.Overview
			s.document("/api/v1/overview?"+query, web.OverviewSchema, &o)
			var with, calls, counted int64
			for _, c := range o.Columns {
				if c.Calls > 0 {
					with++
				}
				calls += c.Calls
				for _, n := range c.Counts {
					counted += n
				}
				if c.P50Ns > c.P99Ns || c.P99Ns > c.MaxNs || c.Slow > c.Calls {
					t.Errorf("%s: %+v", query, c)
				}
			}
			if with < want || calls != counted || o.Whose != "users" || len(o.Columns) > 181 {
				t.Errorf("%s, again %v: %d columns with calls of %d, %d calls, %d by time, of %s", query, again, with,
					len(o.Columns), calls, counted, o.Whose)
			}
		}
	}
	var hour, minutes web.Overview
	s.document("/api/v1/overview?range=6h", web.OverviewSchema, &hour)
	var kept int64
	from, to := hour.From.Unix(), w.now.Unix()/60*60-180
	all, err := w.history.Minutes(from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		kept += m.Calls
	}
	var shown int64
	for _, c := range hour.Columns {
		if c.Start.Unix()+hour.StepSeconds <= to {
			shown += c.Calls
		}
	}
	if left := (to - from) % hour.StepSeconds; kept == 0 || left == 0 && shown != kept || shown > kept {
		t.Errorf("%d calls of %d", shown, kept)
	}
	s.document("/api/v1/overview?range=6h&node=10.9.9.9:1", web.OverviewSchema, &minutes)
	for _, c := range minutes.Columns {
		if c.Calls > 0 {
			t.Fatalf("calls of a node that is not there: %+v", c)
		}
	}
	if len(hour.Incidents) == 0 || len(hour.Marks) != 1 {
		t.Errorf("%d incidents, %d marks", len(hour.Incidents), len(hour.Marks))
	}
}

// TestMarksOfTheAPI: CI marks a time, and finds it again.
func TestMarksOfTheAPI(t *testing.T) {
	w := emptyWorld(t)
	o := w.options()
	var told []incidents.Mark
	o.Mark = func(m incidents.Mark) { told = append(told, m) }
	s := start(t, o)
	const asJSON = "Content-Type: application/json"
	got := s.ask("POST", "/api/v1/marks", `{"text":"deploy <b>of</b> shop","time":"2026-11-24T01:00:00Z"}`, asJSON)
	if got.code != 201 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	var marks web.Marks
	s.document("/api/v1/marks?from=2026-11-24T00:59:00Z&to=2026-11-24T01:01:00Z", web.MarksSchema, &marks)
	if len(marks.Marks) != 1 || marks.Marks[0].Text != "deploy <b>of</b> shop" || !slices.Equal(told, marks.Marks) {
		t.Errorf("%+v, the agent was told of %+v", marks, told)
	}
	if page := s.ask("GET", "/compare", ""); strings.Contains(page.body, "<b>of</b>") {
		t.Error("the text of a mark is markup")
	}
}

// TestMapOfTheAPI: the nodes of a cluster, with their roles and slots, are those of CLUSTER NODES.
func TestMapOfTheAPI(t *testing.T) {
	w := sharedWorld(t)
	s := start(t, w.options())
	var m web.Map
	s.document("/api/v1/topology", web.MapSchema, &m)
	if len(m.Nodes) != 1 || m.Nodes[0].Address != node || !m.Nodes[0].Watched || m.Nodes[0].Role != "primary" ||
		m.Nodes[0].Calls == 0 || len(m.Callers) == 0 {
		t.Errorf("%+v", m)
	}
	cluster := clusterWorld(t, w.now, w.clock)
	s = start(t, web.Options{View: cluster})
	s.document("/api/v1/topology", web.MapSchema, &m)
	slots, primaries := 0, 0
	for _, n := range m.Nodes {
		slots += n.Slots
		if n.Role == "primary" {
			primaries++
		}
	}
	if m.AsSeenBy == "" || slots != 16384 || primaries < 3 || len(m.Uncovered) != 0 {
		t.Errorf("%d slots, %d primaries: %+v", slots, primaries, m)
	}
}

// TestHealthOfTheAPI: who may see it gets what is watched; an agent that watches nothing is no success.
func TestHealthOfTheAPI(t *testing.T) {
	state := healthy()
	s := start(t, web.Options{Health: func() web.Health { return state }})
	var h web.Health
	s.document("/healthz", web.HealthSchema, &h)
	if h.Version != "test" || h.Targets[0].State != web.StateWatched || h.Problems == nil || h.Unseen == nil {
		t.Errorf("%+v", h)
	}
	state = web.Health{Status: web.Failed, Problems: []string{"the disk is full: give room"}}
	if got := s.ask("GET", "/healthz", ""); got.code != 503 || !strings.Contains(got.body, "disk is full") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if page := s.ask("GET", "/", ""); !strings.Contains(page.body, "Nothing is watched: the disk is full") {
		t.Errorf("%s", page.body)
	}
}

// TestTextsOfOthers: what attackers call things is text on all pages, and bounded.
func TestTextsOfOthers(t *testing.T) {
	evil := `"><script>alert(1)</script><img src=x onerror=alert(2)>` + "\u202e\x1b[2J" + strings.Repeat("A", 3000)
	w := emptyWorld(t)
	in, err := w.store.Begin(evil, evil, w.now.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	in.State, in.Verdict, in.Cause, in.Summary, in.Error = evil, evil, evil, evil, evil
	if err := w.store.Update(in); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Mark(incidents.Mark{Time: w.now, Text: evil[:56]}); err != nil {
		t.Fatal(err)
	}
	replayNames(w.view, w.now.UnixNano(), evil)
	o := w.options()
	o.Health = func() web.Health {
		return web.Health{
			Status: web.Degraded, Problems: []string{evil},
			Targets: []web.Watched{{Target: evil, State: evil, Why: evil}},
			Unseen:  []web.BlindSpot{{What: evil, Why: evil, Enable: evil}}, Cost: web.Cost{Reduced: evil},
			Ring: web.Kept{From: w.now.Add(-time.Minute), Lost: evil},
		}
	}
	s := start(t, o)
	for _, path := range []string{
		"/", "/incidents", "/incidents?q=" + "%3Cscript%3E", "/incidents/" + in.ID, "/topology", "/compare", "/live",
		"/compare?mark=%3Cscript%3E", "/?range=%3Cscript%3E", "/login?next=/%3Cscript%3E",
	} {
		got := s.ask("GET", path, "")
		for _, not := range []string{
			"<script>alert", "<img", "onerror=alert(2)>", "\u202e", "\x1b", strings.Repeat("A", 1200),
		} {
			if strings.Contains(got.body, not) {
				t.Errorf("%s has %.20q", path, not)
			}
		}
		if got.code >= 500 || strings.Contains(got.body, "ZgotmplZ") {
			t.Errorf("%s: %d", path, got.code)
		}
	}
	for _, path := range []string{"/api/v1/incidents", "/api/v1/topology", "/api/v1/slow", "/api/v1/overview"} {
		got := s.ask("GET", path, "")
		if strings.Contains(got.body, strings.Repeat("A", 1200)) || strings.ContainsAny(got.body, "\u202e\x1b") ||
			got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v, %d bytes", path, got.header, len(got.body))
		}
	}
}
