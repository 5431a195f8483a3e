package report

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

const (
	maxCallersTime = 4    // kinds of processes
	leastPart      = 0.01 // of the time of its threads; smaller parts are one
)

// callersTime shows where the threads of callers spent their time.
func (p *page) callersTime(d verdict.Diagnosis) {
	all := verdict.KindsOfCallers(d.CallersTime)
	if len(all) == 0 {
		return
	}
	p.Section("Where the threads of your callers were, all their time")
	for _, t := range all[:min(len(all), maxCallersTime)] {
		p.Paragraph("  ", "    ", callerTimeSaid(t), layout.None)
		if polls := t.PollsSaid(); polls != "" && d.Verdict != verdict.Healthy { // there the summary has it
			p.Paragraph("    ", "    ", polls, layout.Dim)
		}
	}
	if n := len(all) - maxCallersTime; n > 0 {
		p.More("  ", n)
	}
}

// callerTimeSaid lists the parts of the time of one process, or of several of a kind.
func callerTimeSaid(t verdict.CallerTime) string {
	var parts []string
	rest := 1.0
	for _, part := range t.Parts {
		if part.Share < leastPart && part.What != "redis" {
			continue
		}
		rest -= part.Share
		text := format.Percent(part.Share) + " " + textOfPart(part.What)
		switch part.What {
		case "peers":
			text += waitsSaid(t, func(w recording.WaitsFor) bool { return w.Address != "" })
		case longerOf(t):
			text += waitsSaid(t, func(w recording.WaitsFor) bool { return w.Call != "" })
		}
		parts = append(parts, text)
	}
	if rest >= leastPart/2 {
		parts = append(parts, format.Percent(rest)+" other")
	}
	who := fmt.Sprintf("%s[%d]", t.Name, t.PID)
	if t.Processes > 1 {
		who = fmt.Sprintf("%s, %d processes", t.Name, t.Processes)
	}
	return fmt.Sprintf("%s, %s: %s", who, threadsSaid(t), strings.Join(parts, ", "))
}

// longerOf is the longer part of those that are system calls.
func longerOf(t verdict.CallerTime) string {
	if t.In("disk") > t.In("others") {
		return "disk"
	}
	return "others"
}

// maxWaitsSaid of a kind are named, the longest.
const maxWaitsSaid = 2

// waitsSaid names what threads waited for outside their process, of one kind.
func waitsSaid(t verdict.CallerTime, is func(recording.WaitsFor) bool) string {
	var said []string
	for _, w := range t.Outside {
		if is(w) && len(said) < maxWaitsSaid {
			text := format.Name(w.Name()) + " " + format.Percent(float64(w.Ns)/float64(t.Ns))
			if w.Waits > 0 {
				text += ", " + format.Thousands(w.Waits) + " times"
			}
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, "; ") + ")"
}

// threadsSaid says whose time it is.
func threadsSaid(t verdict.CallerTime) string {
	said := format.Count(t.Threads, "thread")
	switch {
	case t.Source != recording.SourceHost:
		return said
	case t.Assumed:
		return said + " that ran (none was seen to wait for a reply), by samples"
	}
	said += " seen to call or connect, by samples"
	if t.OtherThreads > 0 {
		said += fmt.Sprintf(" (not of %s)", format.Count(t.OtherThreads, "other"))
	}
	return said
}

func textOfPart(what string) string {
	for _, p := range verdict.TimeParts {
		if p.What == what {
			return p.Text
		}
	}
	return what
}
