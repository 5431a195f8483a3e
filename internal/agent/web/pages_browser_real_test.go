package web_test

import (
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/report/browsertest"
)

var screenshots = flag.String("screenshots", "", "write pictures of the agent's pages into this `directory`")

// looks are the pages as somebody opens them. Ready is an expression that is true once all is there.
func looks(w *world) []struct{ name, path, ready string } {
	throttled := w.ids["server-cfs-throttled"]
	return []struct{ name, path, ready string }{
		{"overview-15m", "/?range=15m", "!!shown && !heat.hidden"},
		{"overview-24h", "/?range=24h", "!!shown && !heat.hidden"},
		{"incidents", "/incidents", "true"},
		{"incident", "/incidents/" + throttled, "true"},
		{"live", "/live", "body.querySelectorAll('tr.call').length > 5 && !!document.querySelector('#nodes tbody tr')"},
		{"topology", "/topology", "true"},
		{"topology-cluster", "/topology", "!!document.querySelector('svg.strip rect')"},
		{"compare", "/compare?before=" + throttled + "&after=now", "true"},
		{"compare-choose", "/compare", "true"},
	}
}

// runningWorld is the fixture with the real clock, which browsers have, too.
func runningWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, t.TempDir(), time.Now(), nil)
}

// goOn lets the watch go on until the test ends: each second has the calls of a second of a recording.
func (w *world) goOn(t *testing.T) {
	rec := corpus.Open(t, "server-cfs-throttled")
	start, end := rec.Window()
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for last := int64(0); ; {
			if now := time.Now().Unix(); now > last {
				last = now
				second := start/1e9 + 2 + now%(end/1e9-start/1e9-2)
				w.second(rec, second, now-second)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
}

// second gives the view one second of a recording, so many seconds later.
func (w *world) second(rec *recording.Recording, second, later int64) {
	for _, h := range rec.Histograms {
		if h.Second == second {
			h.Second, h.Node = second+later, node
			w.view.Histogram(h)
		}
	}
	for _, c := range rec.Calls {
		if c.EndNs/1e9 != second {
			continue
		}
		segments := append([]recording.Segment(nil), rec.SegmentsOf(c.ID)...)
		for i := range segments {
			segments[i].FromNs, segments[i].ToNs = segments[i].FromNs+later*1e9, segments[i].ToNs+later*1e9
		}
		c.IntendedNs, c.StartNs, c.EndNs = c.IntendedNs+later*1e9, c.StartNs+later*1e9, c.EndNs+later*1e9
		c.Node = node
		w.view.Call(c, segments...)
	}
}

// TestPagesInBrowser opens each page in Chromium: it fits the screen, and asks nothing of others.
func TestPagesInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	openPages(t, []string{"light"}, []int64{1440})
}

func openPages(t *testing.T, themes []string, widths []int64) {
	t.Helper()
	ctx := browsertest.New(t)
	w := runningWorld(t)
	w.goOn(t)
	s := start(t, comparing(w.options()))
	for _, c := range looks(w) {
		t.Run(c.name, func(t *testing.T) {
			at := s.url
			if c.name == "topology-cluster" {
				at = start(t, web.Options{View: clusterWorld(t, time.Now(), nil)}).url
			}
			p := browsertest.Open(t, ctx, at+c.path)
			p.Await(c.ready)
			for _, theme := range themes {
				for _, width := range widths {
					p.Show(width, "screen", theme)
					p.Await(c.ready)
					p.Check(fmt.Sprintf("%s, %s, %d px", c.name, theme, width))
					p.Picture(*screenshots, fmt.Sprintf("%s-%s-%d", c.name, theme, width),
						c.name != "incident" && c.name != "live")
				}
			}
			p.QuietBut(func(address string) bool { return strings.HasPrefix(address, at+"/") })
		})
	}
}

// TestOverviewByKeyboard: the heat map is read, zoomed and followed to an incident with the keyboard alone.
func TestOverviewByKeyboard(t *testing.T) {
	needs.Real(t, needs.Chromium)
	ctx := browsertest.New(t)
	w := runningWorld(t)
	s := start(t, w.options())
	p := browsertest.Open(t, ctx, s.url+"/?range=15m")
	p.Await("!!shown && !heat.hidden")
	p.Show(1280, "screen", "light")
	browsertest.Eval[bool](p, "(map.focus(), document.activeElement == map)")
	p.Do(chromedp.KeyEvent(kb.End))
	if got := browsertest.Eval[string](p, "map.getAttribute('aria-valuetext')"); !strings.Contains(got, "–") {
		t.Errorf("the last column says %q", got)
	}
	found := false
	for range 120 {
		p.Do(chromedp.KeyEvent(kb.ArrowLeft))
		if found = browsertest.Eval[bool](p, "!at('there').hidden"); found {
			break
		}
	}
	said := browsertest.Eval[string](p, "at('reading').textContent")
	if !found || !strings.Contains(said, "calls/s") || !strings.Contains(said, "p99") {
		t.Fatalf("no incident is found by the arrows; the last column says %q", said)
	}
	p.Picture(*screenshots, "overview-cursor", true)
	p.Do(chromedp.KeyEvent(kb.Enter))
	p.Await(fmt.Sprintf("location.pathname == %q", "/incidents/"+w.ids["server-cfs-throttled"]))
	p.Await("!!document.getElementById('report')")
	p = browsertest.Open(t, ctx, s.url+"/?range=24h")
	p.Await("!!shown && !heat.hidden")
	browsertest.Eval[bool](p, "(map.focus(), point(70), true)")
	p.Do(chromedp.KeyEvent(kb.Enter))
	p.Await("location.search.includes('from=') && !!shown && shown.step_seconds < 600")
	p.Do(chromedp.KeyEvent("?"))
	p.Await("document.getElementById('keys').open")
	p.Do(chromedp.KeyEvent(kb.Escape))
	p.Await("!document.getElementById('keys').open")
	p.DoUntil("location.pathname == '/live'", chromedp.KeyEvent("g"), chromedp.KeyEvent("l"))
}

// TestLiveByKeyboard: slow calls come while the page is open; Enter shows where the time of one went, p pauses, and a
// filter leaves out others.
func TestLiveByKeyboard(t *testing.T) {
	needs.Real(t, needs.Chromium)
	ctx := browsertest.New(t)
	w := runningWorld(t)
	s := start(t, w.options())
	p := browsertest.Open(t, ctx, s.url+"/live")
	p.Show(1440, "screen", "light")
	p.Await("document.querySelectorAll('tr.call').length > 5 && !!events && events.readyState == 1")
	before := browsertest.Eval[int](p, "newest")
	feed(t, w.view, 2)
	p.Await(fmt.Sprintf("newest >= %d", before+2))
	browsertest.Eval[bool](p, "(body.querySelector('tr.call').focus(), true)")
	p.Do(chromedp.KeyEvent(kb.Enter))
	text := browsertest.Eval[string](p, "body.querySelector('.fall').innerText")
	if !strings.Contains(text, "server throttled") || !strings.Contains(text, "18.0") {
		t.Errorf("the waterfall says %q", text)
	}
	wide := browsertest.Eval[float64](p, "Math.max(...[...body.querySelectorAll('.time > i')].map("+
		"bar => bar.getBoundingClientRect().width))")
	if wide < 50 {
		t.Errorf("the bar of 18 of 20 ms is %.0f px wide", wide)
	}
	p.Check("live, open")
	p.Picture(*screenshots, "live-waterfall-1440", false)
	p.Show(360, "screen", "dark")
	p.Check("live, open, 360 px")
	p.Picture(*screenshots, "live-waterfall-360", false)
	p.Do(chromedp.KeyEvent("p"))
	p.Await("pause.getAttribute('aria-pressed') == 'true'")
	rows := browsertest.Eval[int](p, "body.querySelectorAll('tr.call').length")
	feed(t, w.view, 3)
	p.Await("pause.textContent.includes('3 more')")
	if n := browsertest.Eval[int](p, "body.querySelectorAll('tr.call').length"); n != rows {
		t.Errorf("%d rows, and %d while paused", rows, n)
	}
	p.Do(chromedp.KeyEvent("p"))
	p.Await(fmt.Sprintf("body.querySelectorAll('tr.call').length >= Math.min(500, %d)", rows+3))
	p.Do(chromedp.KeyEvent("/"))
	p.Await("document.activeElement == filter")
	browsertest.Eval[bool](p, "(filter.value = '', true)") // chromedp types the character, whatever the page says
	p.Do(chromedp.KeyEvent("shop"))
	p.Await("[...body.querySelectorAll('tr.call')].filter((r) => !r.hidden).length == 5")
	p.QuietBut(func(address string) bool { return strings.HasPrefix(address, s.url+"/") })
}

// TestIncidentInBrowser: the report is in a frame without rights; links lead to its parts; its commands can be copied.
func TestIncidentInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	ctx := browsertest.New(t)
	w := runningWorld(t)
	s := start(t, w.options())
	p := browsertest.Open(t, ctx, s.url+"/incidents/"+w.ids["server-cfs-throttled"]+"#cause-1")
	p.Show(1440, "screen", "light")
	p.Await("report.src.endsWith('#cause-1')")
	if browsertest.Eval[bool](p, "!!report.contentDocument") {
		t.Error("the page can read the report, so the report has the rights of the page")
	}
	p.Picture(*screenshots, "incident-section-1440", false)
	evil := s.url + "/incidents/" + w.ids["server-cfs-throttled"] + "#" + url.PathEscape(`x" onload="alert(1)`)
	p = browsertest.Open(t, ctx, evil)
	p.Await("document.readyState == 'complete'")
	if src := browsertest.Eval[string](p, "report.src"); strings.Contains(src, "#") {
		t.Errorf("the frame is %s", src)
	}
	made, err := w.options().Trigger("asked by a test")
	if err != nil {
		t.Fatal(err)
	}
	p = browsertest.Open(t, ctx, s.url+"/incidents/"+made)
	p.Await("incident.dataset.state == 'watching'")
	if err := w.store.Fail(made, "judging ran out of memory"); err != nil {
		t.Fatal(err)
	}
	p.Await("document.body.innerText.includes('ran out of memory')")
}

// TestWritesInBrowser: the page marks a time and saves an incident; a script that gets into a page is not run.
func TestWritesInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	ctx := browsertest.New(t)
	w := runningWorld(t)
	s := start(t, w.options())
	p := browsertest.Open(t, ctx, s.url+"/?range=15m")
	p.Await("!!shown && !heat.hidden")
	const evil = `<img src=x onerror="owned=1">`
	browsertest.Eval[bool](p, fmt.Sprintf(`(f = document.querySelector("form.post"), f.elements.text.value = %q,
		f.requestSubmit(), true)`, evil))
	p.Await(`f.querySelector("[role=status]").textContent == "Done."`)
	p.Await(fmt.Sprintf(`shown.marks.some((m) => m.text == %q)`, evil))
	p.Await(fmt.Sprintf(`[...document.querySelectorAll("#marks span")].some((m) => m.title.includes(%q))`, evil))
	browsertest.Eval[bool](p, `(g = document.querySelectorAll("form.post")[1], g.requestSubmit(), true)`)
	p.Await(`!!g.querySelector("[role=status] a")`)
	p.Await(`document.querySelector("h1").innerText.includes("asked for on the page")`)
	ran := browsertest.Eval[bool](p, `(() => {
		const s = document.createElement("script");
		s.textContent = "owned = 1";
		document.body.append(s);
		document.body.setAttribute("onclick", "owned = 1");
		document.body.click();
		return typeof owned != "undefined";
	})()`)
	if ran {
		t.Error("a script that was put into the page ran")
	}
}

// TestLoginInBrowser: the form leads to the page that was asked for, and so does a link on another site.
func TestLoginInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	ctx := browsertest.New(t)
	w := runningWorld(t)
	o := w.options()
	o.Token = token
	s := start(t, o)
	p := browsertest.Open(t, ctx, s.url+"/topology")
	p.Await("location.pathname == '/login' && !!document.querySelector('input[name=token]')")
	p.Show(360, "screen", "dark")
	p.Check("login")
	p.Picture(*screenshots, "login-dark-360", true)
	const ready = "document.readyState == 'complete' && document.activeElement.name == 'token'" // else keys are lost
	p.Await(ready)
	p.Do(chromedp.KeyEvent("wrong token"), chromedp.KeyEvent(kb.Enter))
	p.Await("document.body.innerText.includes('not the token') && " + ready)
	p.Do(chromedp.KeyEvent(token), chromedp.KeyEvent(kb.Enter))
	p.Await("location.pathname == '/topology'")
	if browsertest.Eval[string](p, "document.cookie") != "" {
		t.Error("scripts can read the cookie")
	}
	p.Do(chromedp.Navigate("data:text/html,<a id=a href='" + s.url + "/topology'>x</a>"))
	browsertest.Eval[bool](p, "(document.getElementById('a').click(), true)")
	p.Await("location.pathname == '/topology' && document.body.innerText.includes('Who calls')")
}
