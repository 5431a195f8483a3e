package report

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

const (
	minShown  = 0.005 // states with less of the time share one line
	maxTerm   = 26    // columns; no state of the design has more than 19
	wordsGap  = "  "
	shortBar  = 14 // columns; where less is left next to the words, a state takes two lines
	longBar   = 60
	timeWidth = 8
	partWidth = 6
)

// account shows where the time of slow calls went: a bar per state, with what the state means.
func (p *page) account(title string, states []verdict.State) {
	if len(states) == 0 {
		return
	}
	p.Section(title)
	shown, rest := split(states)
	p.states(shown)
	if len(rest) > 0 {
		var ns int64
		var share float64
		for _, s := range rest {
			ns += s.Ns
			share += s.Share
		}
		p.Paragraph("  ", "  ", fmt.Sprintf("and %s: %s, %s", format.Count(len(rest), "smaller part"),
			format.Duration(ns),
			format.Percent(share)), layout.Dim)
	}
}

// statesOf are the states of the lost time, of which the findings have their shares, and the title above them. Where
// none was lost it is the account of the slow calls.
func statesOf(d verdict.Diagnosis) (title string, states []verdict.State) {
	recorded, all := slowCalls(d)
	if lost := lostIn(d.LostTime); len(lost) > 0 {
		title = "Where the lost time passed" + callsSummed(recorded, all, "slow call")
		elsewhere := func(s verdict.State) bool { return s.Actor == verdict.Elsewhere }
		if recorded > 0 && slices.ContainsFunc(lost, elsewhere) {
			title += " and outside of them"
		}
		return title, lost
	}
	return accountTitle(recorded, all), d.Account
}

// accountTitle is that of an account of slow calls.
func accountTitle(recorded, all int) string {
	return "Where the time of slow calls went" + callsSummed(recorded, all, "call")
}

// callsSummed says how many calls a sum is of; nothing where there were none.
func callsSummed(recorded, all int, what string) string {
	switch {
	case recorded <= 0:
		return ""
	case recorded < all:
		return ", summed over " + format.Thousands(recorded) + " recorded of " + format.Count(all, what)
	}
	return ", summed over " + format.Count(recorded, what)
}

// slowCalls are those that were recorded one by one, and all.
func slowCalls(d verdict.Diagnosis) (recorded, all int) {
	for _, of := range d.Populations {
		recorded += of.RecordedSlowCalls
		all += of.SlowCalls
	}
	return recorded, all
}

// split parts the states that get a line of their own from the small ones. Unexplained time always has its line.
func split(states []verdict.State) (shown, rest []verdict.State) {
	for _, s := range states {
		if s.Share < minShown && s.State != unexplained {
			rest = append(rest, s)
		} else {
			shown = append(shown, s)
		}
	}
	return shown, rest
}

func (p *page) states(states []verdict.State) {
	terms, said := 0, 0
	for _, s := range states {
		t := stateName(s.Actor, s.State)
		terms = max(terms, layout.Width(p.Shorten(p.Text(t), maxTerm)))
		said = max(said, layout.Width(meaningOf[t]))
	}
	columns := 1 + timeWidth + 1 + partWidth
	room := p.Style.Width - 2 - terms - 2 - columns - len(wordsGap) - said
	for _, s := range states {
		t := stateName(s.Actor, s.State)
		name := p.Shorten(p.Text(t), maxTerm)
		values := " " + p.length(s.Ns) + " " + layout.PadLeft(p.Text(format.Percent(s.Share)), partWidth)
		if room >= shortBar {
			width := min(room, longBar)
			p.Line("  " + p.In(layout.Bold, layout.Pad(name, terms)) + "  " + p.track(s, width) + values + wordsGap +
				p.In(layout.Dim, p.Text(meaningOf[t])))
			continue
		}
		p.Line("  " + p.In(layout.Bold, name) + p.In(layout.Dim, p.aside(meaningOf[t],
			p.Style.Width-2-layout.Width(name))))
		p.Line("  " + p.track(s, p.Style.Width-2-columns) + values)
	}
}

// track is the bar of a state, padded to width columns.
func (p *page) track(s verdict.State, width int) string {
	b := p.bar(s.Share, width)
	return p.In(actorPaint(s.Actor), b) + layout.Pad("", width-layout.Width(b))
}

// length is a duration in a column of timeWidth.
func (p *page) length(ns int64) string {
	return layout.PadLeft(p.Shorten(p.Text(format.Duration(ns)), timeWidth), timeWidth)
}

// aside is a remark behind a term, in at most width columns.
func (p *page) aside(s string, width int) string {
	if s == "" {
		return ""
	}
	return p.Shorten(" "+p.Text("–")+" "+p.Text(s), width)
}
