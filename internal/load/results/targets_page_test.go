package results

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/load/experiment"
)

// pageOf is the page, whose tags must be balanced.
func pageOf(t *testing.T, s *experiment.Targets) string {
	t.Helper()
	var b bytes.Buffer
	if err := TargetsPage(&b, s); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for open := []string{}; ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			if e.Name.Local == "script" || e.Name.Local == "link" || e.Name.Local == "img" {
				t.Errorf("the page has a %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || a.Name.Local == "src" {
					t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			if last := open[len(open)-1]; last != e.Name.Local {
				t.Fatalf("%s ends as %s", last, e.Name.Local)
			}
			open = open[:len(open)-1]
		}
	}
	for _, place := range regexp.MustCompile(`(?:x|x1|x2|cx|width)="([^"]*)%"`).FindAllStringSubmatch(b.String(), -1) {
		if v, err := strconv.ParseFloat(place[1], 64); err != nil || v < 0 || v > 100 {
			t.Errorf("drawn at %q", place[1])
		}
	}
	return b.String()
}

// TestTargetsPage: the page has what the text has, and a bar, an interval and a circle per round for each target.
func TestTargetsPage(t *testing.T) {
	s := targetsSample(t, false)
	page := pageOf(t, s)
	text := html.UnescapeString(page)
	for _, want := range []string{
		"<td>99 526 ±1.4 %</td>", `<td class="alarm">-31 % ±1.1</td>`, "<td>70 %</td>", "<td>714 µs</td>",
		`<td class="alarm">+45 % ±2.4</td>`, "B</dt><dd>generator-cpu: its thread is at 98 %; --threads 2</dd>",
		"down in 1 round of 6, the last time in round 6: connecting to 10.0.0.6:7000: connection refused",
		"C (haproxy) passes calls on to the server of A (standalone).", "6 rounds of 5 targets in turns",
		"<dd>10.0.0.8:22121, proxy nutcracker</dd>", "<h2>Calls per second</h2>", "<h2>p50</h2>", "<h2>p99</h2>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	const plots, targets, rounds, down = 3, 5, 6, 1
	for what, want := range map[string]int{
		"<rect ": plots * targets, "<circle ": plots * (targets*rounds - down),
		`<g class="interval">`: plots * (targets - 1), // five rounds have none
	} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%d of %s, want %d", got, what, want)
		}
	}
	if page := pageOf(t, targetsSample(t, true)); strings.Contains(page, "Calls per second</h2>") {
		t.Error("an open loop has a plot of the rate that was asked for")
	}
}

// TestTargetsPageEscapes: names of targets come from the command line and from servers.
func TestTargetsPageEscapes(t *testing.T) {
	s := targetsSample(t, false)
	const hostile = "</title></dd><script>alert(1)</script>\" onload=\"x\" {{.}} \x1b[31m\u202e'&<img src=x>"
	s.Summary, s.Caveat, s.Notes = hostile, hostile, []string{hostile}
	for i := range s.Targets {
		c := &s.Targets[i]
		c.Target.Address, c.Target.Server, c.Target.Process, c.Target.Kind = hostile, hostile, hostile, experiment.Proxy
		c.LimitedBy, c.Sentence, c.Failures = hostile, hostile, []experiment.Failure{{Round: 1, Error: hostile}}
	}
	page := pageOf(t, s)
	if strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("control characters in the page")
	}
	if n := strings.Count(page, "&lt;script&gt;alert(1)"); n < 10 {
		t.Errorf("the names are there %d times", n)
	}
}

// TestTargetsPageOfNothing: targets that were down, and numbers that are none.
func TestTargetsPageOfNothing(t *testing.T) {
	s := targetsSample(t, false)
	for i := range s.Targets {
		c := &s.Targets[i]
		c.RequestsPerSecond, c.P50Ns, c.P99Ns, c.Runs, c.Change, c.PerNode = nil, nil, nil, nil, nil, nil
	}
	if page := pageOf(t, s); strings.Count(page, "was down") < 15 || strings.Contains(page, "<rect") {
		t.Errorf("%s", page)
	}
	for _, most := range []float64{
		0, -1, math.Inf(1), math.NaN(), 1e-9, 1, 4.9, 9.99e5, 1.0000001e6, 123456789, 3e-300,
	} {
		ticks, end := ticksTo(most)
		last := ticks[len(ticks)-1]
		if ticks[0] != 0 || last > end || len(ticks) > mostTicks+1 {
			t.Errorf("%v: %v to %v", most, ticks, end)
		}
		if most > 0 && !math.IsInf(most, 0) && (end < most || last < most/2) {
			t.Errorf("%v: ends at %v: %v", most, end, ticks)
		}
	}
}
