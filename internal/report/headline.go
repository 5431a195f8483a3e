package report

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// headline is the verdict in one sentence, what was watched, and the latencies of the calls.
func (p *page) headline(d verdict.Diagnosis) {
	summary := d.Summary
	if summary == "" {
		summary = "No verdict: the diagnosis is empty."
	}
	p.Paragraph("", "", summary, verdictPaint(d.Verdict))
	p.Facts("", append(watched(d), tiers(d.Sources)...), layout.Dim)
	p.Facts("", latencies(d.Latency), layout.None)
	if d.SelectedCalls != nil {
		p.Facts("", processFilterFacts(*d.SelectedCalls), layout.None)
	}
}

// processFilterFacts say how many calls the process filter let pass, and where it let none pass, whose calls there
// were.
func processFilterFacts(w recording.SelectedCalls) []string {
	facts := []string{"only " + w.Only, fmt.Sprintf("%d of %d calls that the tap would have kept", w.Matched,
		w.Matched+w.Others+w.Unknown)}
	if w.Unknown > 0 {
		facts = append(facts, fmt.Sprintf("%d were of processes that had ended before slowpath could read their names",
			w.Unknown))
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
	if s := d.Window.Seconds; s > 0 && !math.IsInf(s, 0) {
		window := fmt.Sprintf("%.0f s", s)
		if !d.Window.Start.IsZero() {
			window += d.Window.Start.UTC().Format(" from 2006-01-02 15:04:05 UTC")
		}
		out = append(out, window)
	}
	return out
}

// tierOf is the tier of evidence that a source belongs to (docs/glossary.md: T0 a connection, T1 the host's files, T2
// the kernel).
var tierOf = map[string]int{recording.SourceHost: 1, recording.SourceTap: 2}

// tiers names the sources that took part, by tier: "T0 probe, server".
func tiers(sources []recording.SourceStatus) []string {
	byTier := make([][]string, 3)
	for _, s := range sources {
		if s.Used {
			byTier[tierOf[s.Name]] = append(byTier[tierOf[s.Name]], s.Name)
		}
	}
	var out []string
	for tier, names := range byTier {
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("T%d %s", tier, strings.Join(names, ", ")))
		}
	}
	return out
}

func latencies(l verdict.Latency) []string {
	if l.Calls == 0 && l.SlowCalls == 0 {
		return nil
	}
	slow := fmt.Sprintf("%d slow", l.SlowCalls)
	if l.SlowThresholdNs > 0 {
		slow += " (≥ " + format.Duration(l.SlowThresholdNs) + ")"
	}
	calls := []string{format.Count(l.Calls, "call")}
	if l.UserCalls > 0 && l.UserCalls != l.Calls {
		calls = []string{format.Count(l.UserCalls, "call") + " of its clients", format.Count(l.Calls, "call") +
			" of slowpath"}
	}
	if l.FailedCalls > 0 {
		calls = append(calls, fmt.Sprintf("%d of slowpath's failed", l.FailedCalls))
	}
	return append(calls, slow, "p50 "+format.Duration(l.P50Ns), "p99 "+format.Duration(l.P99Ns),
		"max "+format.Duration(l.MaxNs))
}
