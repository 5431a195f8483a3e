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
		if part.What == "peers" {
			text += peersSaid(t)
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

// maxPeersSaid services are named, those with the longest waits.
const maxPeersSaid = 2

// peersSaid names the other services that threads waited for.
func peersSaid(t verdict.CallerTime) string {
	var said []string
	for _, p := range t.Peers[:min(len(t.Peers), maxPeersSaid)] {
		said = append(said, fmt.Sprintf("%s %s, %s times", verdict.PeerName(p.Address),
			format.Percent(float64(p.Ns)/float64(t.Ns)), format.Thousands(p.Waits)))
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
