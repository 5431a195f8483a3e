package main

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/notify"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/report/browsertest"
)

var screenshots = flag.String("screenshots", "", "write pictures of TestPageOfARealIncident into this `directory`")

// toldOf is a receiver of --notify.
type toldOf struct {
	*httptest.Server
	mu  sync.Mutex
	all []notify.Message
}

func (r *toldOf) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m notify.Message
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
}

// check: it was told of an incident while that went on, but where the first verdict found nothing, and at its end.
func (r *toldOf) check(t *testing.T, id string, nothingAtFirst bool) {
	t.Helper()
	var states []string
	want := []string{incidents.StateWatching, incidents.StateJudged}
	if nothingAtFirst {
		want = want[1:]
	}
	for end := time.Now().Add(20 * time.Second); !slices.Equal(states, want); await.Pass(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("told of %s: %q, want %q", id, states, want)
			return
		}
		states = nil
		r.mu.Lock()
		for _, m := range r.all {
			if m.ID == id {
				states = append(states, m.State)
			}
		}
		r.mu.Unlock()
	}
}

// TestPageOfARealIncident: a server gets a CPU quota while nobody looks. In the browser the page begins with what the
// agent found (on a busy machine that can be something else first); its link leads to the report; once the quota is
// gone, the incident is compared with now.
func TestPageOfARealIncident(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer, needs.Chromium)
	ctx := browsertest.New(t)
	g := quotaGroup(t, "page")
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{CgroupProcs: g.AllProcs()})
	var told toldOf
	told.Server = httptest.NewServer(&told)
	defer told.Close()
	c := exec.Command(slowpath, "serve", "--listen", "127.0.0.1:0", "--data", dataDir(t),
		"--after", "5s", "--no-tap", "--probe-rate", "10/s", "--slow", "40ms", "--cool-down", "1s",
		"--notify", told.URL, r.Addr)
	var log clitest.Output
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	}()
	until(t, &log, "watching "+r.Addr)
	page := pageOf.FindStringSubmatch(log.String())
	if page == nil {
		t.Fatalf("it does not say where its page is: %s", log.String())
	}
	load := traffic.Start(t.Context(), traffic.Spec{Addr: r.Addr, Conns: 10, Command: traffic.Get(1000)})
	p := browsertest.Open(t, ctx, page[1])
	p.Show(1440, "screen", "light")
	p.Await("!!shown && !heat.hidden")
	if err := g.SetQuota(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	until(t, &log, "begins: ")
	p.Await("document.querySelector('h1').innerText.startsWith('Since ')") // without loading the page again
	p.Picture(*screenshots, "real-incident-begins", true)
	until(t, &log, "first verdict after ")
	if err := g.SetQuota(0); err != nil {
		t.Fatal(err)
	}
	load.Stop()
	until(t, &log, "[0-9]: verdict after ")
	p.Await("shown.incidents.some((i) => i.state == 'judged' && i.verdict == 'findings')")
	const found = "shown.incidents.find((i) => i.state == 'judged' && i.verdict == 'findings')"
	p.Await("(h1 = document.querySelector('h1').innerText.replaceAll('\u00a0', ' ')).includes(" + found + ".summary)")
	cause, id := browsertest.Eval[string](p, found+".cause"), browsertest.Eval[string](p, found+".id")
	t.Logf("found: %s", cause)
	first := regexp.MustCompile(id + `: first verdict after \S+ s: ([a-z-]+): `).FindStringSubmatch(log.String())
	told.check(t, id, first == nil || first[1] == verdict.Healthy || first[1] == verdict.Inconclusive)
	p.Check("a real incident")
	p.Picture(*screenshots, "real-incident-overview", true)
	p.Do(chromedp.Click("h1 a"))
	p.Await("location.pathname.startsWith('/incidents/2') && !!document.getElementById('report')")
	p.Picture(*screenshots, "real-incident-report", false)
	p.Do(chromedp.Click(".actions a[href^='/compare']"))
	p.Await("location.pathname == '/compare' && document.readyState == 'complete'")
	said := browsertest.Eval[string](p, "document.body.innerText")
	p.Picture(*screenshots, "real-incident-compare", true)
	if !strings.Contains(said, cause) || !strings.Contains(said, "Before") {
		t.Errorf("the comparison says %.2000s", said)
	}
}
