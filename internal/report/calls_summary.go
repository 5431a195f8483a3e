package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/trace"
)

const (
	maxCommands = 10
	maxWaited   = 5
)

// CallsSummary writes what a trace amounts to: how many calls, their latencies by command, where the time of the slow
// ones went, what they waited for, and what is not known. It is printed below calls, or alone.
func CallsSummary(w io.Writer, s trace.Summary, below bool, style layout.Style) error {
	p := newPage(style)
	if below {
		p.Line("")
	}
	p.Facts("", CallsFacts(s), layout.Bold)
	p.commands(s.Commands)
	if s.Matched > 0 {
		var states []verdict.State
		for _, a := range s.Account {
			states = append(states, verdict.State{Actor: a.Actor, State: a.State, Ns: a.Ns, Share: a.Share})
		}
		p.account(accountTitle(s.Matched, s.Matched), states)
		p.waited(s.Waits)
	}
	return p.To(w, "the summary")
}

// CallsFacts are the counts of a trace, and how much of it is not known for sure.
func CallsFacts(s trace.Summary) []string {
	var facts []string
	if s.Seconds > 0 && !math.IsInf(s.Seconds, 0) {
		facts = append(facts, fmt.Sprintf("%.1f s", s.Seconds))
	}
	facts = append(facts, format.Count(s.Calls, "call")+" seen", fmt.Sprintf("%s slow (≥ %s)",
		format.Thousands(s.Slow), format.Duration(s.SlowNs)))
	if s.Filtered {
		facts = append(facts, format.Thousands(s.Matched)+" of them match")
	}
	if s.All {
		facts = append(facts, shownFact(s))
	}
	if s.ProcessFilter != nil {
		facts = append(facts, processFilterFacts(*s.ProcessFilter)...)
	}
	matched := "all replies matched to their calls"
	if s.Unaligned > 0 {
		matched = fmt.Sprintf("replies matched to no call: %s (%s)", format.Thousands(s.Unaligned),
			format.Percent(float64(s.Unaligned)/float64(max(s.Unaligned+s.Replies, 1))))
	}
	facts = append(facts, matched)
	lost := "no report lost"
	if s.Dropped > 0 {
		lost = format.Count(s.Dropped, "report") + " of the kernel lost"
	}
	facts = append(facts, lost)
	if s.LeftOut > 0 {
		facts = append(facts, format.Percent(s.LeftOut)+
			" of the requests were on connections that were not followed (--tap-budget)")
	}
	if s.Unreported > 0 {
		facts = append(facts, format.Count(s.Unreported, "slow call")+" too many to be shown")
	}
	if s.Garbage > 0 {
		facts = append(facts, "data other than RESP (TLS, inline commands): "+format.Count(s.Garbage, "time"))
	}
	return facts
}

// shownFact says how many calls were shown of all that should have been.
func shownFact(s trace.Summary) string {
	filtered := s.Filtered || s.ProcessFilter != nil
	all, which := s.Calls, "calls"
	if filtered {
		all, which = int64(s.Fast+s.Matched), "calls that match"
	}
	fact := fmt.Sprintf("%d of %d %s shown", s.Shown, all, which)
	if int64(s.Shown) == all {
		fact = fmt.Sprintf("all %d %s shown", all, which)
	}
	if share := s.Reported; filtered && share < 1 {
		fact += fmt.Sprintf(", of the %s of all calls that were kept", format.Percent(share))
	}
	return fact
}

// commands is the table of latencies.
func (p *page) commands(list []trace.Command) {
	if len(list) == 0 {
		return
	}
	p.Gap()
	name := 7
	for _, c := range list[:min(len(list), maxCommands)] {
		name = max(name, min(layout.Width(p.Text(c.Op)), 3*opWidth))
	}
	if p.Style.Width < name+commandColumns {
		p.foldedCommands(list)
		return
	}
	const columnsOf = "  %s %10s %9s %9s %9s %7s"
	p.Line(p.In(layout.Dim, fmt.Sprintf(columnsOf, layout.Pad("COMMAND", name), "CALLS", "P50", "P99", "MAX", "SLOW")))
	for _, c := range list[:min(len(list), maxCommands)] {
		latencies := []string{"-", "-", "-"}
		for i, ns := range []int64{c.P50Ns, c.P99Ns, c.MaxNs} {
			if c.MaxNs > 0 {
				latencies[i] = p.Text(format.Duration(ns))
			}
		}
		if c.P50Ns == 0 {
			latencies[0], latencies[1] = "-", "-" // only slow calls are known
		}
		p.Line(fmt.Sprintf("  %s %10s %s %s %s %7s", layout.Pad(p.Shorten(p.Text(c.Op), name), name),
			format.Thousands(c.Calls), layout.PadLeft(latencies[0], 9), layout.PadLeft(latencies[1], 9),
			layout.PadLeft(latencies[2], 9), format.Thousands(c.Slow)))
	}
	if more := len(list) - maxCommands; more > 0 {
		p.Line(p.In(layout.Dim, "  and "+format.Count(more, "command")+" more"))
	}
}

// commandColumns is the width of the table of commands beside their names.
const commandColumns = 51

// foldedCommands is the table for a narrow terminal.
func (p *page) foldedCommands(list []trace.Command) {
	var rows [][]string
	for _, c := range list[:min(len(list), maxCommands)] {
		row := []string{c.Op, format.Thousands(c.Calls), "", "", "", format.Thousands(c.Slow)}
		for i, ns := range []int64{c.P50Ns, c.P99Ns, c.MaxNs} {
			if c.MaxNs > 0 && ns > 0 {
				row[2+i] = format.Duration(ns)
			}
		}
		rows = append(rows, row)
	}
	p.Folded([]string{"", "CALLS", "P50", "P99", "MAX", "SLOW"}, rows)
	if more := len(list) - maxCommands; more > 0 {
		p.Line(p.In(layout.Dim, "and "+format.Count(more, "command")+" more"))
	}
}

// waited lists what slow calls waited for.
func (p *page) waited(list []trace.Wait) {
	list = slices.DeleteFunc(slices.Clone(list), func(w trace.Wait) bool { return w.Ns <= 0 })
	if len(list) == 0 {
		return
	}
	p.Section("What they waited for, in all")
	for _, w := range list[:min(len(list), maxWaited)] {
		lead := "  " + p.length(w.Ns) + "  "
		p.Paragraph(lead, layout.Pad("", layout.Width(lead)), fmt.Sprintf("%s (%s, %s)", w.What, stateName(w.Actor,
			w.State),
			format.Count(w.Calls, "call")), layout.None)
	}
	if more := len(list) - maxWaited; more > 0 {
		p.Line(p.In(layout.Dim, "  and "+format.Count(more, "smaller one")))
	}
}
