package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/remedy"
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
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), // our own
		Title: "slowpath: " + plain(d.Target.Address), Class: verdictClass(d.Verdict), Summary: plain(d.Summary),
		SeenBy: seenBy(d.Sources), Watched: joinFacts(watched(d)), Hops: hopsView(d.Hops),
		Findings: findingsView(d.Findings), Made: "Made by slowpath " + plain(d.Version) + ".",
	}
	for _, of := range d.Populations {
		v.Numbers = append(v.Numbers, plain(callsOf(of)))
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
	for _, b := range spotsOf(d) {
		said := whatOf(b)
		if b.Why != "" {
			said += " — " + b.Why
		}
		if b.Enable != "" {
			said += "; to see it: " + b.Enable
		}
		v.Unseen = append(v.Unseen, plain(said))
	}
	for _, e := range d.Cost {
		v.Cost = append(v.Cost, plain(e.Text))
	}
	if err := pageTemplate.Execute(w, v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// plain is a text of somebody else without control characters, on one line, and bounded. The template escapes it.
func plain(s string) string { return layout.Bound(layout.OneLine(s), layout.MaxText) }

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
	Title, Class, Summary string
	Numbers               []string
	Watched, SeenBy, Made string
	Hops                  *hopsPage
	Heat                  *heatPage
	StatesTitle           string
	States                []statePage
	Findings              []findingPage
	Lost                  *lostPage
	WorstTitle            string
	Worst                 []worstPage
	Unseen, Cost          []string
}

type hopsPage struct {
	Said []string
	Rows []hopPage
	Note string
}

type hopPage struct {
	Most   bool
	Name   string
	Values []string
}

func hopsView(hops []verdict.Hop) *hopsPage {
	if len(hops) == 0 {
		return nil
	}
	v := &hopsPage{Note: hopsNote(hops)}
	for i, h := range hops {
		if h.Summary != "" {
			v.Said = append(v.Said, plain(h.Summary))
		}
		v.Rows = append(v.Rows, hopPage{
			h.Summary != "", plain(fmt.Sprintf("%d %s %s", i+1, h.Process, h.Node)), []string{
				format.Thousands(h.Calls), format.Duration(h.P50Ns), format.Duration(h.P99Ns),
				format.Duration(h.AddedP50Ns), format.Duration(h.AddedP99Ns), format.Percent(h.Share),
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
func hundredths(share float64) string { return fmt.Sprintf("%.2f", 100*fraction(share)) }

type lostPage struct {
	Title string
	Heads []string
	Rows  [][]string
	Notes []string
}

// lostView is the table of the lost time, nil where the bars say the same.
func lostView(d verdict.Diagnosis) *lostPage {
	const width = 160 // columns of a text with as many states
	if !hasLostTable(d) {
		return nil
	}
	t := newPage(layout.Style{Width: width, Unicode: true}).lostTable(d.LostTime)
	v := &lostPage{Title: lostTitle, Rows: t.rows[heads:], Notes: lostNotes(d.LostTime)}
	for i := range t.widths {
		v.Heads = append(v.Heads, strings.TrimSpace(t.rows[0][i]+" "+t.rows[1][i]))
	}
	return v
}

type findingPage struct {
	ID, Title, Facts, Because string
	Number                    int
	Fix                       []stepPage
	For, Against              []string
	See                       []linkPage
}

type stepPage struct {
	Text    string
	Command bool
}

type linkPage struct{ URL, Text string }

func findingsView(fs []cause.Finding) (out []findingPage) {
	for i, f := range fs {
		v := findingPage{
			ID: fmt.Sprintf("cause-%d", i+1), Number: i + 1, Title: plain(f.Title), Facts: joinFacts(claim(f)),
		}
		if f.Because != "" {
			v.Because = plain(rootOf(fs, f.Because))
		}
		v.Fix = fixView(f.FixSteps)
		for _, e := range f.Evidence {
			v.For = append(v.For, plain(said(e)))
		}
		for _, e := range f.Against {
			v.Against = append(v.Against, plain(said(e)))
		}
		for _, u := range f.See {
			link := linkPage{Text: plain(u)}
			if strings.HasPrefix(u, "https://") {
				link.URL = u
			}
			v.See = append(v.See, link)
		}
		out = append(out, v)
	}
	return out
}

// fixView are the lines of a fix: sentences, commands to copy, and remarks.
func fixView(steps []remedy.Step) (out []stepPage) {
	add := func(text string, command bool) {
		if text != "" {
			out = append(out, stepPage{layout.Bound(plain(text), layout.MaxText), command})
		}
	}
	for _, s := range steps {
		add(s.Sentence(), false)
		add(s.Command, s.Complete())
		add(joinFacts(remarks(s)), false)
	}
	return out
}

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

type heatPage struct {
	Title, Note   string
	Width, Height int
	Cells         []heatCell
	Rows, Times   []heatText
	Limit         *heatText
}

type heatCell struct{ X, Y, W, H, Opacity, Said string }

type heatText struct{ X, Y, W, Said string }

// Measures of the drawing of calls over time, in its own units.
const (
	heatLeft, heatCellHeight, heatTotal = 54, 14, 1000
	heatTimes                           = 5 // that are written below it
)

// heatOf draws how many calls took how long, by time: darker is more, by the logarithm.
func heatOf(o compare.OverTime, d verdict.Diagnosis) *heatPage {
	first, last, most := len(o.UpToNs), -1, int64(0)
	for _, column := range o.Calls {
		for row, n := range column {
			if n > 0 {
				first, last, most = min(first, row), max(last, row), max(most, n)
			}
		}
	}
	if last < 0 {
		return nil
	}
	whose := map[string]string{"users": "your calls", "load": "the calls of the load", "probe": "slowpath's own calls"}
	v := &heatPage{
		Title: "How long " + whose[o.Population] + " took, over time",
		Note: "Each column is " + format.Brief(int64(o.Step)) + "; the stronger the colour, the more calls. The " +
			"line is the slow threshold.",
		Width: heatTotal, Height: (last-first+1)*heatCellHeight + 20,
	}
	width := float64(heatTotal-heatLeft) / float64(len(o.Calls))
	top := func(row int) int { return (last - row) * heatCellHeight }
	for i, column := range o.Calls {
		for row, n := range column {
			if n <= 0 {
				continue
			}
			v.Cells = append(v.Cells, heatCell{
				fmt.Sprintf("%.1f", heatLeft+float64(i)*width), fmt.Sprint(top(row)),
				fmt.Sprintf("%.1f", max(width-.5, 1)),
				fmt.Sprint(heatCellHeight - 1),
				fmt.Sprintf("%.2f", .15+.85*math.Log1p(float64(n))/math.Log1p(float64(most))),
				fmt.Sprintf("%s: %s up to %s", o.Start.Add(time.Duration(i)*o.Step).Format("15:04:05 UTC"),
					format.Count(int(n), "call"), format.Brief(o.UpToNs[row])),
			})
		}
	}
	for row := first; row <= last; row++ {
		v.Rows = append(v.Rows, heatText{
			X: fmt.Sprint(heatLeft - 5), Y: fmt.Sprint(top(row) + heatCellHeight - 4),
			Said: format.Brief(o.UpToNs[row]),
		})
	}
	for i := range heatTimes {
		at := i * (len(o.Calls) - 1) / heatTimes
		v.Times = append(v.Times, heatText{
			X: fmt.Sprintf("%.1f", heatLeft+float64(at)*width), Y: fmt.Sprint(v.Height - 6),
			Said: o.Start.Add(time.Duration(at) * o.Step).Format("15:04:05"),
		})
	}
	for row := first; row <= last; row++ {
		if o.UpToNs[row] >= d.Latency.SlowThresholdNs && (row == 0 || o.UpToNs[row-1] < d.Latency.SlowThresholdNs) {
			v.Limit = &heatText{
				X: fmt.Sprint(heatLeft), W: fmt.Sprint(heatTotal), Y: fmt.Sprint(top(row)),
				Said: "slow from " + format.Brief(d.Latency.SlowThresholdNs) + " on",
			}
		}
	}
	return v
}
