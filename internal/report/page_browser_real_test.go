package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/report/browsertest"
)

var screenshots = flag.String("screenshots", "", "write pictures of the pages into this `directory`")

// browserPage is a page of a report in a browser.
type browserPage struct{ *browsertest.Page }

func (p *browserPage) picture(name string) {
	p.Picture(*screenshots, name, name != "hostile" && !strings.HasPrefix(name, "hostile-")) // too long for one picture
}

// pageCase is a recording of the corpus, as one tier of evidence shows it.
type pageCase struct {
	name, scenario, tier string
	verdict              string
	change               func(*recording.Recording, *verdict.Diagnosis)
}

var pageCases = []pageCase{
	{"quota", "server-cfs-throttled", "T2", verdict.Findings, nil},
	{"healthy", "healthy-mixed", "T2", verdict.Healthy, nil},
	{"hops", "lb-hop", "T2", verdict.Findings, nil},
	{"inconclusive", "lb-hop", "T0", verdict.Inconclusive, nil},
	{"cluster", "hot-shard-or-hot-key", "T2", verdict.Findings, nil},
	{"causes", "fanout-slowest-shard-twemproxy", "T2", verdict.Findings, nil},
	{"hostile", "server-cfs-throttled", "T2", verdict.Findings, hostile},
}

// hostileText would run, load or widen something if it were markup.
const hostileText = `</style></title></script><script>owned=1;alert(1)</script><img src=x onerror=alert(2)>"' onload=x `

const hostileProcess = "<script>alert(3)</script>"

// hostile puts names and texts of attackers into a diagnosis: 1 MB of findings, and long texts without a space.
func hostile(rec *recording.Recording, d *verdict.Diagnosis) {
	for i := range rec.Calls {
		if rec.Calls[i].Client != "" {
			rec.Calls[i].Client = hostileProcess + "[4711]"
		}
	}
	*d = verdict.Diagnose(rec, "test")
	long := strings.Repeat("<b>W", 1<<18)
	d.Summary += hostileText
	d.Target.Address = hostileText + long
	f := &d.Findings[0]
	f.Title, f.Cause, f.Nodes = hostileText, hostileText+long, []string{long}
	f.Fix = append([]string{"kill -CONT 17 # " + hostileText + long}, f.Fix...)
	f.See = append(f.See, "javascript:alert(4)", "https://example.org/"+hostileText+long)
	for range 1000 {
		f.Evidence = append(f.Evidence, cause.Evidence{Source: hostileText, Text: hostileText + long[:1000]})
	}
	f.Against = append(f.Against, cause.Evidence{Text: long})
	d.Callers = append(d.Callers, verdict.Caller{Name: long, Library: hostileText})
	d.BlindSpots = append(d.BlindSpots, recording.BlindSpot{What: long, Why: hostileText, Enable: hostileText})
	d.Hops = append(d.Hops, verdict.Hop{Node: long, Process: hostileText, Summary: long})
}

// pageFile writes the page of a case, as --html does.
func pageFile(t *testing.T, c pageCase) string {
	t.Helper()
	rec := corpus.Open(t, c.scenario)
	for _, tier := range recording.Tiers {
		if tier.Name == c.tier {
			rec = rec.Without(tier.Without...)
		}
	}
	d := verdict.Diagnose(rec, "test")
	if d.Verdict != c.verdict {
		t.Fatalf("%s at %s is %s, want %s", c.scenario, c.tier, d.Verdict, c.verdict)
	}
	if c.change != nil {
		c.change(rec, &d)
	}
	over, ok := compare.CallsOverTime(rec, d)
	var buf bytes.Buffer
	if err := report.HTML(&buf, d, over, ok); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), c.name+".html")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// TestPageInBrowser opens pages of the corpus in Chromium: they fit the screen, can be used with the keyboard alone,
// are whole on paper, ask nothing of anybody, and what others said in them is text.
func TestPageInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	openPages(t, []string{"light"}, []int64{1600})
}

// openPages opens the pages in windows of some widths, in CSS pixels.
func openPages(t *testing.T, themes []string, widths []int64) {
	t.Helper()
	ctx := browsertest.New(t)
	for _, c := range pageCases {
		t.Run(c.name, func(t *testing.T) {
			p := &browserPage{browsertest.Open(t, ctx, pageFile(t, c))}
			for _, theme := range themes {
				for _, width := range widths {
					p.Show(width, "screen", theme)
					p.Check(fmt.Sprintf("%s, %d px", theme, width))
					p.picture(fmt.Sprintf("%s-%s-%d", c.name, theme, width))
				}
			}
			if c.change == nil {
				p.firstScreen(widths)
			}
			p.keyboard()
			p.print(c.name)
			p.Quiet()
			if c.change != nil {
				p.showsNames()
			}
			p.refusesScripts()
		})
	}
}

// firstScreen: the verdict, the numbers and the first step of the fix are seen without scrolling.
func (p *browserPage) firstScreen(widths []int64) {
	p.Helper()
	for _, width := range widths {
		p.Show(width, "screen", "light")
		bottom := browsertest.Eval[float64](p.Page, `Math.max(...[...document.querySelectorAll(
			"h1, .number, .first pre:first-of-type, .first p:first-of-type")].map((e) => e.getBoundingClientRect().bottom))`)
		if bottom > browsertest.ScreenHeight {
			p.Errorf("%d px: the first fix ends at %.0f px of %d", width, bottom, browsertest.ScreenHeight)
		}
	}
	if browsertest.Eval[bool](p.Page, `!!document.querySelector(".findings") != !!document.querySelector(".first pre, .first p")`) {
		p.Error("findings without a first fix, or a fix of nothing")
	}
}

// keyboard: Tab reaches all that can be used, in the order of the page and visibly; Enter copies and unfolds.
func (p *browserPage) keyboard() {
	p.Helper()
	p.Show(1280, "screen", "light")
	usable := browsertest.Eval[int](p.Page, `(all = [...document.querySelectorAll("a, button, summary, [tabindex]")].filter(
		(e) => e.checkVisibility())).length`)
	browsertest.Eval[bool](p.Page, `(getSelection().removeAllRanges(), scrollTo(0, 0), true)`)
	for i := range min(usable, 60) {
		p.Do(chromedp.KeyEvent(kb.Tab))
		at := browsertest.Eval[struct {
			Index         int
			Style         string
			Width         float64
			Shown, Button bool
		}](p.Page, `(() => {
			const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
			return { Index: all.indexOf(e), Style: style.outlineStyle, Width: parseFloat(style.outlineWidth),
				Shown: box.bottom > 0 && box.top < innerHeight, Button: e.matches("button") };
		})()`)
		if at.Index != i || at.Style != "solid" || at.Width < 2 || !at.Shown {
			p.Fatalf("Tab %d is at %+v of %d", i+1, at, usable)
		}
	}
	p.copies()
	if !browsertest.Eval[bool](p.Page, `!!(one = document.querySelector("details")) && (one.firstElementChild.focus(), true)`) {
		return
	}
	open := browsertest.Eval[bool](p.Page, `one.open`)
	if p.Do(chromedp.KeyEvent(kb.Enter)); browsertest.Eval[bool](p.Page, `one.open`) == open {
		p.Errorf("Enter leaves the details open: %v", open)
	}
	if p.Do(chromedp.KeyEvent(kb.Enter)); browsertest.Eval[bool](p.Page, `one.open`) != open {
		p.Errorf("Enter again leaves the details open: %v", !open)
	}
}

// copies: Enter on a button puts its command into the clipboard; where that is forbidden the command is selected.
func (p *browserPage) copies() {
	p.Helper()
	if browsertest.Eval[int](p.Page, `(button = document.querySelector("button[data-copy]")) ? 1 : 0`) == 0 {
		return
	}
	command := browsertest.Eval[string](p.Page, `button.parentElement.querySelector("pre").textContent`)
	permit := func(setting browser.PermissionSetting) {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			_, err := chromedp.CallBrowser(p.Context, browser.SetPermission, browser.SetPermissionParams{
				Permission: &browser.PermissionDescriptor{Name: name}, Setting: setting,
			})
			if err != nil {
				p.Fatal(err)
			}
		}
	}
	press := func(want string) {
		p.Helper()
		browsertest.Eval[bool](p.Page, `(button.focus(), true)`)
		p.Do(chromedp.KeyEvent(kb.Enter))
		p.Await(fmt.Sprintf("button.textContent == %q", want))
	}
	permit(browser.PermissionSettingDenied)
	press("Selected: copy it")
	if got := browsertest.Eval[string](p.Page, `getSelection().toString()`); strings.TrimSpace(got) != strings.TrimSpace(command) {
		p.Errorf("selected %q of %q", got, command)
	}
	permit(browser.PermissionSettingGranted)
	press("Copied")
	if got := browsertest.Eval[string](p.Page, `navigator.clipboard.readText()`); got != command {
		p.Errorf("copied %q of %q", got, command)
	}
}

// print: on paper all is open, without buttons and without the colours of the dark theme; then the page is as before.
func (p *browserPage) print(name string) {
	p.Helper()
	p.Show(720, "print", "dark")
	p.Check("print")
	if hidden := browsertest.Eval[int](p.Page, `[...document.querySelectorAll("details *")].filter((e) => !e.checkVisibility() ||
		e.getBoundingClientRect().height == 0).length`); hidden > 0 {
		p.Errorf("print: %d elements of details are hidden", hidden)
	}
	if browsertest.Eval[bool](p.Page, `[...document.querySelectorAll("button")].some((e) => e.checkVisibility())`) {
		p.Error("print: there are buttons")
	}
	if got := browsertest.Eval[string](p.Page, `getComputedStyle(document.body).backgroundColor`); got != "rgb(255, 255, 255)" {
		p.Errorf("print: the paper is %s", got)
	}
	p.picture(name + "-print")
	p.Show(1280, "", "light")
	open := `document.querySelectorAll("details[open]").length`
	before := browsertest.Eval[int](p.Page, open)
	pdf, err := chromedp.Run(p.Context, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil {
		p.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || browsertest.Eval[int](p.Page, open) != before {
		p.Errorf("%d bytes; %d details were open, and %d are", len(pdf), before, browsertest.Eval[int](p.Page, open))
	}
	if *screenshots != "" {
		if err := os.WriteFile(filepath.Join(*screenshots, name+".pdf"), pdf, 0o644); err != nil {
			p.Error(err)
		}
	}
}

// refusesScripts: there is one script, and the browser would run no other.
func (p *browserPage) refusesScripts() {
	p.Helper()
	if n := browsertest.Eval[int](p.Page, `document.querySelectorAll("script, img, iframe, object, link, base").length`); n != 1 {
		p.Errorf("%d elements that run or load something", n)
	}
	ran := browsertest.Eval[bool](p.Page, `(() => {
		const s = document.createElement("script");
		s.textContent = "owned = 1";
		document.body.append(s);
		document.body.setAttribute("onclick", "owned = 1");
		document.body.click();
		return typeof owned != "undefined";
	})()`)
	if ran {
		p.Error("a script that was put into the page ran")
	}
}

// showsNames: a process may be called as it likes.
func (p *browserPage) showsNames() {
	p.Helper()
	for _, text := range []string{hostileProcess, strings.TrimSpace(hostileText)} {
		if !browsertest.Eval[bool](p.Page, fmt.Sprintf("document.body.innerText.includes(%q)", text)) {
			p.Errorf("%s is not to be read", text)
		}
	}
}
