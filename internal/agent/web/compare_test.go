package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/corpus"
)

// TestRegressedSinceADeploy: CI marks a deploy; the windows before and after it are held against each other, once, and
// the page says what was deployed, and what changed.
func TestRegressedSinceADeploy(t *testing.T) {
	w := sharedWorld(t)
	o := comparing(w.options())
	deploy := w.now.Add(-5 * time.Minute).Truncate(time.Second)
	var mu sync.Mutex
	var windows []string
	o.Save = func(_ context.Context, from, to time.Time, in *folder.Folder, name string) error {
		mu.Lock()
		defer mu.Unlock()
		windows = append(windows, fmt.Sprint(from.Sub(deploy), " ", to.Sub(deploy)))
		if to.After(deploy) {
			return corpus.Unpack("server-cfs-throttled", in.Path(name))
		}
		return corpus.Unpack("healthy-mixed", in.Path(name))
	}
	s := start(t, o)
	mark := url.Values{"mark": {deploy.UTC().Format(time.RFC3339)}, "window": {"2m"}}.Encode()
	var c compare.Comparison
	s.document("/api/v1/compare?"+mark, compare.Schema, &c)
	if c.Verdict != compare.Worse || len(c.Findings) != 1 || c.Findings[0].Change != "new" {
		t.Errorf("%+v", c)
	}
	page := s.ask("GET", "/compare?"+mark, "")
	for _, want := range []string{
		"<h1 class=\"verdict findings\">Regressed since " + deploy.UTC().Format("15:04:05"), "deploy of shop 1.2.3",
		"server-cfs-throttled", "<h2>Your calls</h2>",
	} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(windows) != 2 || windows[0] != "-2m0s 0s" || windows[1] != "0s 2m0s" {
		t.Errorf("windows %q: each is to be saved once", windows)
	}
	windows = nil
	with := "/api/v1/compare?before=" + w.ids["server-cfs-throttled"] + "&after=now"
	s.document(with, compare.Schema, &c)
	if c.Before.Target == "" || c.Verdict != compare.Better && c.Verdict != compare.Worse && c.Verdict != compare.Same {
		t.Errorf("with an incident: %+v", c)
	}
	// The incident was four minutes ago: of the five minutes those count that follow it.
	if len(windows) != 1 || !strings.HasPrefix(windows[0], "1m") {
		t.Errorf("now is the window %q", windows)
	}
}

const pathOfTheHost = "/srv/agent/tmp"

// TestComparisonsThatCannotBe: what is not kept, not there, or too much is said in one sentence, on the page, too; what
// fails, without a path of the host.
func TestComparisonsThatCannotBe(t *testing.T) {
	w := sharedWorld(t)
	o := comparing(w.options())
	o.Save = func(context.Context, time.Time, time.Time, *folder.Folder, string) error {
		return &fs.PathError{Op: "open", Path: pathOfTheHost, Err: syscall.ENOSPC}
	}
	s := start(t, o)
	at := func(ago time.Duration) string { return w.now.Add(-ago).UTC().Format(time.RFC3339) }
	for query, want := range map[string]struct {
		code int
		said string
	}{
		"mark=" + at(3*time.Hour):                  {404, "full detail is kept from"},
		"mark=" + at(-time.Hour):                   {400, "future"},
		"mark=" + at(time.Second):                  {400, "wait"},
		"before=20200101T000000Z-1&after=now":      {404, "no incident"},
		"mark=" + at(5*time.Minute) + "&window=2h": {400, "window"},
		"mark=" + at(5*time.Minute):                {500, "this failed: no space left on device; the agent"},
		"before_from=" + at(time.Minute) + "&before_to=" + at(2*time.Minute) + "&after=now": {400, "shorter"},
	} {
		got := s.ask("GET", "/api/v1/compare?"+query, "")
		if said := got.failure(t); got.code != want.code || !strings.Contains(said, want.said) {
			t.Errorf("%s: %d %q, want %d %q", query, got.code, said, want.code, want.said)
		}
		page := s.ask("GET", "/compare?"+query, "")
		if strings.Contains(got.body+page.body, pathOfTheHost) {
			t.Errorf("%s tells of a path: %s %s", query, got.body, page.body)
		}
		if page.code != want.code || !strings.Contains(page.body, want.said) ||
			!strings.Contains(page.body, "Two windows") {
			t.Errorf("the page of %s: %d", query, page.code)
		}
	}
}

// TestOneComparisonAtATime: comparisons take processes, so that a second one is told to come back.
func TestOneComparisonAtATime(t *testing.T) {
	w := sharedWorld(t)
	o := w.options()
	begun, finish := make(chan struct{}), make(chan struct{})
	o.Save = func(context.Context, time.Time, time.Time, *folder.Folder, string) error { return nil }
	o.Compare = func(ctx context.Context, _, _ string) ([]byte, error) {
		close(begun)
		<-finish
		return json.Marshal(compare.Comparison{Schema: compare.Schema})
	}
	s := start(t, o)
	done := make(chan answer, 1)
	mark := func(ago time.Duration) string { return "/api/v1/compare?mark=" + fmt.Sprint(w.now.Add(-ago).Unix()) }
	go func() { done <- s.ask("GET", mark(2*time.Minute), "") }()
	<-begun
	if got := s.ask("GET", mark(3*time.Minute), ""); got.code != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("a second one: %d %s", got.code, got.body)
	}
	close(finish)
	if got := <-done; got.code != 200 {
		t.Errorf("the first one: %d %s", got.code, got.body)
	}
}

// TestManyIncidents: a store with more than a page has is paged, and searched to its end.
func TestManyIncidents(t *testing.T) {
	store := manyIncidents(t, 1_050)
	s := start(t, web.Options{Store: store})
	seen, pages := map[string]bool{}, 0
	for next := "/api/v1/incidents?limit=100"; next != ""; pages++ {
		var page web.Incidents
		s.document(next, web.IncidentsSchema, &page)
		for _, one := range page.Incidents {
			seen[one.ID] = true
		}
		next = ""
		if page.Next != "" {
			next = "/api/v1/incidents?limit=100&before=" + page.Next
		}
	}
	if len(seen) != 1_050 || pages != 11 {
		t.Errorf("%d incidents on %d pages", len(seen), pages)
	}
	if got := s.ask("GET", "/incidents?q=number+17.", ""); strings.Count(got.body, "<time") != 1 {
		t.Errorf("%d found", strings.Count(got.body, "<time"))
	}
}

// manyIncidents is a store that was opened with so many incidents in its directory.
func manyIncidents(t testing.TB, n int) *incidents.Store { return manyIncidentsIn(t, t.TempDir(), n) }

func manyIncidentsIn(t testing.TB, dir string, n int) *incidents.Store {
	t.Helper()
	begin := time.Now().Add(-20 * 24 * time.Hour).UTC().Truncate(time.Second)
	for i := range n {
		in := incidents.Incident{
			Start: begin.Add(time.Duration(i) * 150 * time.Second), Cause: "slow-command", State: incidents.StateJudged,
			Verdict: "findings", SlowCalls: int64(i), Trigger: fmt.Sprintf("number %d. of a test", i), Target: node,
			Summary: "KEYS holds the event loop, and all other calls wait for it.",
		}
		in.ID, in.End = in.Start.Format("20060102T150405Z")+"-1", in.Start.Add(12*time.Second)
		writeIncident(t, dir, in)
	}
	store, err := incidents.Open(foldertest.Open(t, dir), incidents.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
