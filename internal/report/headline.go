package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// headline is the verdict in one sentence, the numbers of the users' calls, its proof and the first step of its fix;
// then the numbers of other calls, and what was watched.
func (p *page) headline(d verdict.Diagnosis) {
	summary := d.Summary
	if summary == "" {
		summary = "No verdict: the diagnosis is empty."
	}
	p.Paragraph("", "", summary, verdictPaint(d.Verdict))
	rest := d.Populations
	if len(rest) > 0 {
		p.Paragraph("", "", callsOf(rest[0]), layout.None)
		rest = rest[1:]
	}
	p.answer(d)
	for _, of := range rest {
		p.Paragraph("", "", callsOf(of), layout.Dim)
	}
	p.Facts("", watched(d), layout.Dim)
	if by := seenBy(d.Sources); by != "" {
		p.Paragraph("", "", "seen by: "+by, layout.Dim)
	}
	if d.SelectedCalls != nil {
		p.Facts("", processFilterFacts(*d.SelectedCalls), layout.None)
	}
}

// processFilterFacts say how many calls the process filter let pass, and where it let none pass, whose calls there
// were.
func processFilterFacts(w recording.SelectedCalls) []string {
	facts := []string{"only " + w.Only, format.Thousands(w.Matched) + " of " +
		format.Count(w.Matched+w.Others+w.Unknown, "call") + " that the tap would have kept"}
	if w.Unknown > 0 {
		facts = append(facts, format.Thousands(w.Unknown)+
			" were of processes that had ended before slowpath could read their names")
	}
	switch {
	case len(w.Seen) > 0:
		facts = append(facts, "seen were: "+strings.Join(w.Seen, ", "))
	case w.Calls == 0 && w.Matched == 0:
		facts = append(facts, "no call of theirs was seen")
	}
	return facts
}

func verdictPaint(said string) layout.Paint {
	switch said {
	case verdict.Healthy:
		return layout.Calm
	case verdict.Findings:
		return layout.Alarm
	}
	return layout.Doubt
}

func watched(d verdict.Diagnosis) []string {
	var out []string
	if d.Target.Address != "" {
		out = append(out, d.Target.Address)
	}
	if d.Target.Server != "" {
		out = append(out, d.Target.Server)
	}
	switch n := len(d.Target.Nodes); {
	case d.Target.Kind == "cluster":
		out = append(out, "cluster of "+format.Count(n, "node"))
	case n > 1:
		out = append(out, format.Count(n, "node"))
	}
	if s := d.Window.Watched(); s > 0 && !math.IsInf(s, 0) {
		window := fmt.Sprintf("%.0f s", s)
		if !d.Window.Start.IsZero() {
			window += d.Window.Start.UTC().Format(" from 2006-01-02 15:04:05 UTC")
		}
		out = append(out, window)
	}
	if ns := d.Latency.SlowThresholdNs; ns > 0 && len(d.Populations) > 0 {
		slow := "slow ≥ " + format.Brief(ns)
		if fresh := d.Latency.FreshSlowThresholdNs; fresh > 0 {
			slow += " (new connections " + format.Brief(fresh) + ")"
		}
		out = append(out, slow)
	}
	return out
}

// sourceNames put the sources into plain words, in the order of the tiers of evidence (docs/glossary.md: T0 a
// connection, T1 the host's files, T2 the kernel). The names in brackets are those behind the evidence.
var sourceNames = []struct{ source, words string }{
	{recording.SourceLoad, "slowpath bench"},
	{recording.SourceProbe, "own calls"},
	{recording.SourceServer, "INFO"},
	{recording.SourceProfile, "stacks"},
	{recording.SourceHost, "host's /proc"},
	{recording.SourceTap, "kernel"},
}

// plainSource is a source in plain words, with its name.
func plainSource(source string) string {
	for _, n := range sourceNames {
		if n.source == source {
			return n.words + " [" + source + "]"
		}
	}
	return source
}

// seenBy names the sources that took part: "own calls [probe], INFO [server]".
func seenBy(sources []recording.SourceStatus) string {
	used := map[string]bool{}
	for _, s := range sources {
		used[s.Name] = s.Used
	}
	var out []string
	for _, n := range sourceNames {
		if used[n.source] {
			out = append(out, plainSource(n.source))
			delete(used, n.source)
		}
	}
	for _, s := range sources {
		if used[s.Name] {
			out = append(out, s.Name)
		}
	}
	return strings.Join(out, ", ")
}

// callsOf says of a population how many of its calls were slow, and how long they took: "your calls: 90 of 275 307 slow
// (0.03 %), p99 200 µs, worst 438 ms".
func callsOf(of verdict.Population) string {
	facts := []string{slowOf(of)}
	if of.FailedCalls > 0 && of.Name == account.OfUsers {
		facts = append(facts, format.Thousands(of.FailedCalls)+" more got no reply")
	} else if of.FailedCalls > 0 {
		facts = append(facts, format.Thousands(of.FailedCalls)+" failed")
	}
	if of.P99Ns > 0 {
		facts = append(facts, "p99 "+format.Duration(of.P99Ns)+onTheWire(of))
	}
	if of.MaxNs > 0 {
		facts = append(facts, "worst "+format.Duration(of.MaxNs))
	}
	return populationName(of) + ": " + strings.Join(facts, ", ")
}

// wireDiffers: times of a call and of its caller that are apart by less are the same to a reader.
const wireDiffers = 1.1

// onTheWire is how long calls took from their requests on, where their callers waited longer.
func onTheWire(of verdict.Population) string {
	if of.WireP99Ns == 0 || float64(of.P99Ns) < wireDiffers*float64(of.WireP99Ns) {
		return ""
	}
	return " (on the wire " + format.Duration(of.WireP99Ns) + ")"
}

func populationName(of verdict.Population) string {
	switch {
	case of.Name == account.OfUsers && of.At == recording.Server:
		return "your calls at the server"
	case of.Name == account.OfUsers:
		return "your calls"
	case of.Name == account.OfProbe:
		return "slowpath's own calls"
	case of.Name == account.OfLoad:
		return "calls of slowpath bench"
	case of.Name == account.OfSlowlog:
		return "commands in SLOWLOG"
	}
	return of.Name
}

func slowOf(of verdict.Population) string {
	switch all := format.Thousands(of.Calls); {
	case of.Name == account.OfSlowlog:
		return all + " slow"
	case of.SlowCalls <= 0:
		return "none of " + all + " slow"
	case of.Name == account.OfUsers:
		return fmt.Sprintf("%s of %s slow (%s)", format.Thousands(of.SlowCalls), all,
			smallPercent(float64(of.SlowCalls)/float64(max(of.Calls, 1))))
	default:
		return format.Thousands(of.SlowCalls) + " of " + all + " slow"
	}
}

// smallPercent is format.Percent with as many decimals as a small share needs: "0.03 %".
func smallPercent(share float64) string {
	const fine = 0.0005
	if share <= 0 || share >= fine {
		return format.Percent(share)
	}
	decimals := int(math.Ceil(-math.Log10(100 * share)))
	return strconv.FormatFloat(100*share, 'f', decimals, 64) + " %"
}
