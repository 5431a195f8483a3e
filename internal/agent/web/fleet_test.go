package web_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/manyhosts"
)

// ofMany are the recordings that a tenant has, each of a host of its own.
func ofMany(t testing.TB, tenant string, names ...string) *manyhosts.Folder {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		in := filepath.Join(dir, tenant, "cluster=shop", "host="+name)
		if cluster, scenario, ok := strings.Cut(name, "/"); ok { // of which all are the same host
			name, in = scenario, filepath.Join(dir, tenant, "cluster="+cluster, "host=redis-1")
		}
		if err := os.MkdirAll(in, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := corpus.Unpack(name, filepath.Join(in, "20261120T030000Z-1.slowpath")); err != nil {
			t.Fatal(err)
		}
	}
	f, err := manyhosts.OpenFolder(t.Context(), manyhosts.FolderOptions{
		Paths: []string{filepath.Join(dir, tenant)}, Index: filepath.Join(dir, "index"),
		Say: func(line string) { t.Error(line) }, Show: func(string, ...any) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// showFleet runs the page of many hosts until the test ends.
func showFleet(t testing.TB, o web.FleetOptions) *site {
	t.Helper()
	o.Listen, o.Version = "127.0.0.1:7380", "test"
	f, err := web.NewFleet(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	s := &site{TB: t, url: "http://" + l.Addr().String(), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// opener gives each tenant its source.
func opener(of map[string]manyhosts.Source) func(context.Context, string, web.When) (web.Opened, error) {
	return func(ctx context.Context, tenant string, at web.When) (web.Opened, error) {
		s := of[tenant]
		from, to, err := s.Span(ctx)
		if !at.From.IsZero() {
			from = at.From
		}
		if !at.To.IsZero() {
			to = at.To
		}
		if at.Last > 0 {
			from = to.Add(-at.Last)
		}
		return web.Opened{Source: s, From: from, To: to, Done: func() {}}, err
	}
}

// TestFleetPages: the page answers all questions, from the overview to one incident; what is not there and what is
// wrong is said.
func TestFleetPages(t *testing.T) {
	folder := ofMany(t, "shop", "slow-command", "server-cfs-throttled")
	s := showFleet(t, web.FleetOptions{
		Source: "recordings/", Open: opener(map[string]manyhosts.Source{"": folder}),
	})
	got := s.ask("GET", "/", "")
	for _, want := range []string{
		"slow at 2 nodes: ", "KEYS holds the event loop", "Fix: Remove the CPU limit",
		"slowpath fleet recordings/ doctor slow-command/20261120T030000Z-1",
		`href="/incident?cluster=shop&amp;host=slow-command&amp;id=20261120T030000Z-1"`, "<rect", "sp.grade[",
	} {
		if got.code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("the overview: %d, without %s", got.code, want)
		}
	}
	for _, q := range manyhosts.Questions {
		page := s.ask("GET", "/ask/"+q.Name, "")
		if page.code != 200 || strings.Contains(page.body, "could not be asked") {
			t.Errorf("/ask/%s: %d %s", q.Name, page.code, page.body)
		}
		var d manyhosts.Document
		s.document("/api/v1/fleet/"+q.Name+"?limit=3", manyhosts.Schema, &d)
		if d.Question != q.Name || len(d.Rows) > 3 {
			t.Errorf("%s: %+v", q.Name, d)
		}
	}
	incident := s.ask("GET", "/incident?host=slow-command&id=20261120T030000Z-1", "")
	for _, want := range []string{"KEYS holds the event loop", "confidence 99 %", "Nodes at the same time"} {
		if incident.code != 200 || !strings.Contains(incident.body, want) {
			t.Errorf("the incident: %d, without %s", incident.code, want)
		}
	}
	for path, want := range map[string]int{
		"/ask/nothing": 404, "/incident?host=a&id=20261120T030000Z-1": 404, "/incident": 400, "/?last=never": 400,
		"/?from=2026-11-22T18:00:00Z&to=2026-11-22T17:00:00Z": 400, "/api/v1/fleet/why?limit=-1": 400,
		"/nowhere": 404, "/compare?at=yesterday": 400, "/healthz": 204,
		"/?node=%27%3B+DROP+TABLE+call_row": 200, "/?last=1h": 200,
	} {
		if got := s.ask("GET", path, ""); got.code != want {
			t.Errorf("%s: %d, want %d: %s", path, got.code, want, got.body)
		}
	}
	if got := s.ask("GET", "/?node=%3Cscript%3E", ""); strings.Contains(got.body, "<script>") {
		t.Error("what is asked about comes back as HTML")
	}
}

// TestFleetClusters: incidents of two clusters whose hosts have the same names are apart.
func TestFleetClusters(t *testing.T) {
	folder := ofMany(t, "all", "shop/slow-command", "bank/server-cfs-throttled")
	s := showFleet(t, web.FleetOptions{Source: "x", Open: opener(map[string]manyhosts.Source{"": folder})})
	overview := s.ask("GET", "/", "").body
	for cluster, cause := range map[string]string{"shop": "slow-command", "bank": "server-cfs-throttled"} {
		at := "/incident?cluster=" + cluster + "&host=redis-1&id=20261120T030000Z-1"
		if !strings.Contains(overview, strings.ReplaceAll(at, "&", "&amp;")) {
			t.Errorf("no link to %s", at)
		}
		_, causes, _ := strings.Cut(s.ask("GET", at, "").body, "<h2>Why")
		causes, _, _ = strings.Cut(causes, "</section>")
		if strings.Count(causes, `class="finding"`) != 1 || !strings.Contains(causes, cause) {
			t.Errorf("%s: %s", cluster, causes)
		}
	}
}

// TestFleetCompare: a node that got worse at a time is said to be, and so is a cause that is new.
func TestFleetCompare(t *testing.T) {
	folder := ofMany(t, "shop", "slow-command")
	from, to, err := folder.Span(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := showFleet(t, web.FleetOptions{Source: "x", Open: opener(map[string]manyhosts.Source{"": folder})})
	at := url.QueryEscape(from.Add(-time.Minute).UTC().Format(time.RFC3339))
	got := s.ask("GET", "/compare?at="+at+"&window=1h", "")
	for _, want := range []string{"slow-command", "Note\">new", "Before\">–\n", "new since then: slow-command"} {
		if got.code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("to %s: %d, without %s: %s", to, got.code, want, got.body)
		}
	}
}

// TestFleetTenants: who has a token sees what its tenant has, also by a cookie and from the cache, and nobody sees
// anything without one.
func TestFleetTenants(t *testing.T) {
	tokens := map[string]string{"shop-token-of-24-letters": "shop", "bank-token-of-24-letters": "bank"}
	s := showFleet(t, web.FleetOptions{
		Source: "s3://incidents/{tenant}", Options: web.Options{Tenants: tokens},
		Open: opener(map[string]manyhosts.Source{
			"shop": ofMany(t, "shop", "slow-command"), "bank": ofMany(t, "bank", "server-cfs-throttled"),
		}),
	})
	for range 2 {
		for token, tenant := range tokens {
			form := url.Values{"token": {token}, "csrf": {csrfOf(t, s.ask("GET", "/login", "").body)}}
			cookie, _, _ := strings.Cut(s.login(form).header.Get("Set-Cookie"), ";")
			for _, header := range []string{"Authorization: Bearer " + token, "Cookie: " + cookie} {
				for _, path := range []string{"/", "/ask/worst", "/api/v1/fleet/why", "/ask/calls"} {
					got := s.ask("GET", path, "", header)
					if got.code != 200 || strings.Contains(got.body, "slow-command") != (tenant == "shop") {
						t.Errorf("%s sees of %s: %d", tenant, path, got.code)
					}
				}
			}
		}
	}
	for _, path := range []string{"/", "/ask/worst", "/incident?host=a&id=b", "/compare", "/api/v1/fleet/why"} {
		if got := s.ask("GET", path, ""); got.code != 303 && got.code != 401 {
			t.Errorf("%s without a token: %d", path, got.code)
		}
	}
	if _, err := web.NewFleet(web.FleetOptions{Options: web.Options{
		Listen: "127.0.0.1:7380", Tenants: map[string]string{"short": "shop"},
	}}); err == nil || !strings.Contains(err.Error(), "can be guessed") {
		t.Errorf("a short token: %v", err)
	}
}

// TestFleetPartly: a part of the overview that cannot be asked says so, and the others are there; a source that does
// not answer is told of without its secrets.
func TestFleetPartly(t *testing.T) {
	folder := ofMany(t, "shop", "slow-command")
	s := showFleet(t, web.FleetOptions{Source: "x", Open: opener(map[string]manyhosts.Source{"": failing{folder}})})
	got := s.ask("GET", "/", "")
	if got.code != 200 || !strings.Contains(got.body, "This could not be asked") ||
		!strings.Contains(got.body, "KEYS holds the event loop") || strings.Contains(got.body, "secret") {
		t.Errorf("%d %s", got.code, got.body)
	}
	gone := showFleet(t, web.FleetOptions{
		Source: "clickhouse://ch/slowpath",
		Open: func(context.Context, string, web.When) (web.Opened, error) {
			return web.Opened{}, fmt.Errorf("%w: secret", manyhosts.ErrNoAnswer)
		},
	})
	if got := gone.ask("GET", "/", ""); got.code != 503 || strings.Contains(got.body, "secret") ||
		!strings.Contains(got.body, "clickhouse://ch/slowpath does not answer") {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// failing is a source that does not say which nodes are worst.
type failing struct{ manyhosts.Source }

// Query implements manyhosts.Source.
func (f failing) Query(ctx context.Context, sql string, filter manyhosts.Filter) (manyhosts.Rows, error) {
	if q, _ := manyhosts.QuestionOf("worst"); sql == q.SQL() {
		return manyhosts.Rows{}, errors.New("a secret of the engine")
	}
	return f.Source.Query(ctx, sql, filter)
}
