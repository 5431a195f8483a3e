package report

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// maxFacts bounds the lines of evidence of one finding: in a cluster of a hundred nodes each node brings its own.
const maxFacts = 12

// findings shows each cause with its proof, what speaks against it, and the fix.
func (p *page) findings(fs []cause.Finding) {
	for i, f := range fs {
		number := fmt.Sprintf("%d. ", i+1)
		p.Gap()
		p.Paragraph(number, layout.Pad("", len(number)), f.Title, layout.Bold)
		p.Facts("   ", claim(f), layout.None)
		if f.Because != "" {
			p.Paragraph("   ", "   ", "a consequence of "+rootOf(fs, f.Because), layout.Doubt)
		}
		p.culprits(f.Culprits)
		p.evidence("proof", "+ ", f.Evidence, layout.None)
		p.evidence("against", "- ", f.Against, layout.Yellow)
		p.evidence("changed before", "· ", changesBefore(f.Changes), layout.None)
		p.fix(f)
		p.links(f.See)
	}
}

// culprits are whose behaviour has to change.
func (p *page) culprits(all []caller.Culprit) {
	for i, c := range all {
		label := "   by: "
		if i > 0 {
			label = "       "
		}
		p.Paragraph(label, "       ", c.Text, layout.None)
	}
}

// claim is how much a finding explains, and how sure it is.
func claim(f cause.Finding) []string {
	var out []string
	for _, s := range []string{f.Cause, f.Layer} {
		if s != "" {
			out = append(out, s)
		}
	}
	if len(f.Nodes) > 0 {
		out = append(out, "at "+strings.Join(f.Nodes, ", "))
	}
	out = append(out, format.Percent(f.ExcessShare)+" of the lost time")
	if f.Of > 0 && f.SlowCalls > 0 {
		out = append(out, format.Thousands(f.SlowCalls)+" of "+format.Count(f.Of, "slow call"))
	}
	known := fmt.Sprintf("confidence %s: %s", format.Percent(f.Confidence), gradeText[f.Grade])
	if f.Samples > 0 { // none where no call was timed
		known += ", " + format.Count(f.Samples, "call")
	}
	return append(out, known)
}

var gradeText = map[cause.Grade]string{
	cause.Seen: "seen in the kernel", cause.Counted: "counted in the same time",
	cause.Inferred:   "inferred from a pattern",
	cause.Eliminated: "by elimination",
}

func rootOf(fs []cause.Finding, id string) string {
	for i, f := range fs {
		if f.Cause == id {
			return fmt.Sprintf("finding %d, %s", i+1, id)
		}
	}
	return id
}

func (p *page) evidence(label, mark string, facts []cause.Evidence, c layout.Paint) {
	if len(facts) == 0 {
		return
	}
	p.heading(label)
	for _, e := range facts[:min(len(facts), maxFacts)] {
		p.Paragraph("   "+mark, "     ", said(e), c)
	}
	if n := len(facts) - maxFacts; n > 0 {
		p.More("     ", n)
	}
}

// changesBefore are changes as facts.
func changesBefore(all []changes.Cited) (out []cause.Evidence) {
	for _, c := range all {
		text := c.Sentence()
		if c.ByMechanism {
			text += ": such a change can bring this about"
		}
		out = append(out, cause.Evidence{Source: c.Source, Text: text})
	}
	return out
}

func (p *page) heading(s string) { p.Line("   " + p.In(layout.Bold, s)) }

// said is a fact with its source in brackets.
func said(e cause.Evidence) string {
	s := layout.Bound(e.Text, layout.MaxText-100)
	if s == "" {
		s = fmt.Sprintf("%g %s", e.Value, e.Unit)
	}
	if e.Source != "" {
		s += " [" + e.Source + "]"
	}
	return s
}

func (p *page) fix(f cause.Finding) {
	if len(f.FixSteps) == 0 {
		return
	}
	p.heading("fix")
	p.fixSteps(f.FixSteps)
}

func (p *page) links(urls []string) {
	if len(urls) == 0 {
		return
	}
	p.heading("see")
	for _, u := range urls {
		p.Piece("     ", u, layout.Dim)
	}
}
