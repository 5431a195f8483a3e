package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// TestHTML: the page of each sample has what a reader needs, asks nothing of anybody else, and nothing that others said
// is markup, a script, an address or a control character in it.
func TestHTML(t *testing.T) {
	tags := regexp.MustCompile(`<(script|style|img|link|iframe|object|form|base)\b`)
	fetched := regexp.MustCompile(`(?i)(src|url\(|@import|action)\s*[=(]`)
	evil := `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	all := map[string]verdict.Diagnosis{}
	for name, d := range samples {
		all[name] = d
	}
	d := proxied()
	d.Summary, d.Target.Address, d.Hops[0].Node, d.Hops[1].Summary = evil, evil, evil, evil
	d.Findings = []cause.Finding{{
		Title: evil, Cause: evil, Layer: evil, FixSteps: []remedy.Step{{
			ID: "wake", Kind: remedy.Command, Command: "kill -CONT 17; echo " + evil,
		}}, See: []string{
			"javascript:alert(1)", "https://example.org/" + evil,
		}, Evidence: []cause.Evidence{{Text: evil, Source: evil}},
	}}
	d.Worst[0].Op, d.Worst[0].Segments[0].Actor, d.Account[0].Actor = evil, evil, evil
	d.Callers = []verdict.Caller{{Name: evil, Library: evil, Calls: 7, SlowCalls: 2}}
	d.OnCPU = []verdict.OnCPU{{Name: evil, Functions: []verdict.OnCPUFunction{{Name: evil}}}}
	d.BlindSpots = []recording.BlindSpot{{What: evil, Why: evil, Enable: "CONFIG SET a " + evil}}
	all["markup"] = d
	over := compare.OverTime{
		Population: "users", Start: time.Unix(0, 0).UTC(), Step: time.Second, UpToNs: []int64{1e6, 10e6, 100e6},
		Calls: [][]int64{{5, 0, 0}, {3, 0, 1}},
	}
	for name, d := range all {
		for _, timed := range []bool{true, false} {
			var buf bytes.Buffer
			if err := HTML(&buf, d, over, timed); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			page := buf.String()
			if found := tags.FindAllString(page, -1); len(found) != 2 { // our own style and script
				t.Errorf("%s: %q", name, found)
			}
			if s := fetched.FindString(strings.NewReplacer(pageStyle, "", pageScript, "").Replace(page)); s != "" &&
				name != "markup" { // there it is text
				t.Errorf("%s: it asks for something: %q", name, s)
			}
			if strings.Contains(page, `href="javascript`) || strings.Contains(page, "<img") {
				t.Errorf("%s: what others said is markup", name)
			}
			if !strings.Contains(page, "default-src 'none'") || strings.Contains(page, "ZgotmplZ") {
				t.Errorf("%s: no policy, or a value that the template refused", name)
			}
			if got := strings.Count(page, `class="call"`); timed && got != 3 || !timed && got != 0 {
				t.Errorf("%s: %d cells", name, got)
			}
			for _, r := range page {
				if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
					t.Errorf("%s: %U in the page", name, r)
				}
			}
		}
	}
	var buf bytes.Buffer
	if err := HTML(&buf, throttled(), over, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		throttled().Findings[0].Title, "<button", "p99", "What could not be seen", "slow from",
	} {
		if !strings.Contains(strings.ReplaceAll(buf.String(), "&#39;", "'"), want) {
			t.Errorf("it lacks %q", want)
		}
	}
}

// TestCallersOfPage: a process has its number, another host its name.
func TestCallersOfPage(t *testing.T) {
	rows, _ := callersView([]verdict.Caller{
		{Name: "10.0.0.7", HostName: "app-3"}, {Name: "worker.py", PID: 812, Processes: 1},
	})
	if rows[0].Name != "10.0.0.7 (app-3)" || rows[1].Name != "worker.py[812]" {
		t.Errorf("%+v", rows)
	}
}
