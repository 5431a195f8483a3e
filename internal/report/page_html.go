package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// HTML writes a diagnosis as one page that needs nothing from elsewhere: to hand it to others. It has what Text has,
// and the calls over time where ok. It can be read without scripts; with them, commands can be copied.
func HTML(w io.Writer, d verdict.Diagnosis, o compare.OverTime, ok bool) error {
	v := pageView{
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), ScriptPolicy: scriptPolicy(), // our own
		Title: "slowpath: " + plain(d.Target.Address), Class: verdictClass(d.Verdict), Summary: plain(d.Summary),
		SeenBy: seenBy(d.Sources), Watched: joinFacts(watched(d)), Hops: hopsView(d.Hops),
		Findings: findingsView(d.Findings), OnCPU: onCPUView(d.OnCPU),
		Unseen: unseenView(d), UnseenFirst: d.Verdict == verdict.Inconclusive,
		Made: "Made by slowpath " + plain(d.Version) + ".",
	}
	v.Callers, v.CallersNote = callersView(d.Callers)
	kinds := verdict.KindsOfCallers(d.CallersTime)
	for _, t := range kinds[:min(len(kinds), maxCallersShown)] {
		v.CallersTime = append(v.CallersTime, plain(callerTimeSaid(t)))
	}
	for _, of := range d.Populations {
		v.Numbers = append(v.Numbers, plain(callsOf(of)))
	}
	if d.SelectedCalls != nil {
		v.Numbers = append(v.Numbers, joinFacts(processFilterFacts(*d.SelectedCalls)))
	}
	if len(v.Findings) > 0 {
		v.First = firstSteps(d.Findings[0].FixSteps)
	}
	if ok {
		v.Heat = heatOf(o, d)
	}
	title, states := statesOf(d)
	v.StatesTitle, v.States, v.Lost = title, statesView(states), lostView(d)
	v.WorstTitle = worstTitle(d)
	for _, c := range d.Worst[:min(len(d.Worst), maxWorst)] {
		v.Worst = append(v.Worst, worstView(c))
	}
	for _, e := range d.Told {
		v.Told = append(v.Told, plain(e.Text))
	}
	for _, e := range d.Cost {
		v.Cost = append(v.Cost, plain(e.Text))
	}
	if err := pageTemplate.Execute(w, v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// scriptPolicy lets the browser run the page's own script, and no other, should one get into the page.
func scriptPolicy() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// plain is a text of somebody else without control characters, on one line, and bounded. The template escapes it.
func plain(s string) string {
	s = layout.Bound(layout.OneLine(s), layout.MaxText)
	for range 2 { // matches do not overlap: 1 211 339
		s = inNumbers.ReplaceAllString(s, "$1\u00a0$2")
	}
	return s
}

// inNumbers are the spaces at which a line must not end: within a number, and before its unit.
var inNumbers = regexp.MustCompile(`(\d) (\d{3}\b|%|[nµm]?s\b)`)

func joinFacts(facts []string) string {
	for i := range facts {
		facts[i] = plain(facts[i])
	}
	return strings.Join(facts, " · ")
}

// verdictClass gives a class only to what the program itself calls so.
func verdictClass(said string) string {
	switch said {
	case verdict.Healthy, verdict.Findings, verdict.Inconclusive:
		return said
	}
	return ""
}

type pageView struct {
	Style                 template.CSS
	Script                template.JS
	ScriptPolicy          string
	Title, Class, Summary string
	Numbers               []string
	First                 []stepPage // of the fix, for the first screen
	Watched, SeenBy, Made string
	Findings              []findingPage
	Lost                  *lostPage
	WorstTitle            string
	Hops                  *hopsPage
	Heat                  *heatPage
	StatesTitle           string
	States                []statePage
	Worst                 []worstPage
	Callers               []callerPage
	CallersNote           string
	CallersTime           []string
	OnCPU                 []onCPUPage
	Unseen                []unseenPage
	UnseenFirst           bool // it is why there is no verdict
	Told                  []string
	Cost                  []string
}

type hopsPage struct {
	Said []string
	Rows []hopPage
	Note string
}

type hopPage struct {
	Most   bool
	Name   string
	Values []hopValue
}

type hopValue struct{ Head, Said string }

// hopsHeads are the heads of the columns as the page writes them.
var hopsHeads = strings.NewReplacer("P50, P99", "p50, p99", "ADDS", "Adds", "LOST", "Lost")

func hopsView(hops []verdict.Hop) *hopsPage {
	if len(hops) == 0 {
		return nil
	}
	v := &hopsPage{Note: hopsHeads.Replace(hopsNote(hops))}
	for i, h := range hops {
		if h.Summary != "" {
			v.Said = append(v.Said, plain(h.Summary))
		}
		v.Rows = append(v.Rows, hopPage{
			h.Summary != "", plain(fmt.Sprintf("%d %s %s", i+1, h.Process, h.Node)), []hopValue{
				{"Calls", format.Thousands(h.Calls)},
				{"p50", format.Duration(h.P50Ns)},
				{"p99", format.Duration(h.P99Ns)},
				{"Adds, p50", format.Duration(h.AddedP50Ns)},
				{"Adds, p99", format.Duration(h.AddedP99Ns)},
				{"Lost", format.Percent(h.Share)},
			},
		})
	}
	return v
}

type statePage struct{ Name, Meaning, Actor, Width, Time, Share string }

func statesView(states []verdict.State) (out []statePage) {
	shown, rest := split(states)
	for _, s := range shown {
		name := stateName(s.Actor, s.State)
		out = append(out, statePage{
			plain(name), meaningOf[name], actorClass(s.Actor), hundredths(s.Share), format.Duration(s.Ns),
			format.Percent(s.Share),
		})
	}
	if len(rest) > 0 {
		sum := statePage{Name: format.Count(len(rest), "smaller part")}
		var ns int64
		share := 0.0
		for _, s := range rest {
			ns, share = ns+s.Ns, share+s.Share
		}
		sum.Width, sum.Time, sum.Share = hundredths(share), format.Duration(ns), format.Percent(share)
		out = append(out, sum)
	}
	return out
}

// actorClass gives a class only to actors that the program knows.
func actorClass(actor string) string {
	switch actor {
	case recording.Server, recording.Proxy, recording.Network, recording.Client, recording.App:
		return actor
	}
	return ""
}

// hundredths is a share in percent for a style.
func hundredths(share float64) string { return fmt.Sprintf("%.2f", 100*layout.Fraction(share)) }

type worstPage struct {
	Said string
	Rows []worstRow
}

type worstRow struct{ Actor, Left, Width, Took, Said string }

func worstView(c verdict.Worst) worstPage {
	v := worstPage{Said: joinFacts(callFacts(c))}
	if c.SameStall > 0 {
		v.Said += ", and " + format.Count(c.SameStall, "more call") + " in the same stall"
	}
	total := float64(max(c.Ns, 1))
	for _, r := range rows(c) {
		said := stateName(r.actor, r.state)
		if r.culprit != "" {
			said += " " + r.culprit
		}
		if r.others > 0 {
			said += fmt.Sprintf(" (+%d shorter)", r.others)
		}
		v.Rows = append(v.Rows, worstRow{
			actorClass(r.actor), hundredths(float64(r.fromNs) / total), hundredths(float64(r.ns()) / total),
			format.Duration(r.ns()), plain(said),
		})
	}
	return v
}
