package report

import (
	"fmt"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/format"
)

// maxFacts bounds the lines of evidence of one finding: in a cluster of a hundred nodes each node brings its own.
const maxFacts = 12

// findings shows each cause with its proof, what speaks against it, and the fix.
func (p *page) findings(fs []cause.Finding) {
	for i, f := range fs {
		number := fmt.Sprintf("%d. ", i+1)
		p.gap()
		p.paragraph(number, pad("", len(number)), f.Title, bold)
		p.facts("   ", claim(f), none)
		if f.Because != "" {
			p.paragraph("   ", "   ", "a consequence of "+rootOf(fs, f.Because), doubt)
		}
		p.evidence("proof", "+ ", f.Evidence, none)
		p.evidence("against", "- ", f.Against, yellow)
		p.fix(f.Fix)
		p.links(f.See)
	}
}

// claim is what a finding says of itself in figures.
func claim(f cause.Finding) []string {
	var out []string
	for _, s := range []string{f.Cause, f.Layer} {
		if s != "" {
			out = append(out, s)
		}
	}
	if f.Of > 0 {
		out = append(out, format.Percent(f.ExcessShare)+" of the excess", fmt.Sprintf("%d of %s", f.SlowCalls,
			format.Count(f.Of, "slow call")))
	}
	return append(out, "confidence "+format.Percent(f.Confidence))
}

func rootOf(fs []cause.Finding, id string) string {
	for i, f := range fs {
		if f.Cause == id {
			return fmt.Sprintf("finding %d, %s", i+1, id)
		}
	}
	return id
}

func (p *page) evidence(label, mark string, facts []cause.Evidence, c paint) {
	if len(facts) == 0 {
		return
	}
	p.heading(label)
	for _, e := range facts[:min(len(facts), maxFacts)] {
		p.paragraph("   "+mark, "     ", said(e), c)
	}
	if n := len(facts) - maxFacts; n > 0 {
		p.more("     ", n)
	}
}

// more says that a list was cut.
func (p *page) more(lead string, n int) {
	p.paragraph(lead, lead, fmt.Sprintf("… and %d more (all with --json)", n), dim)
}

func (p *page) heading(s string) { p.line("   " + p.in(bold, s)) }

// said is a fact with its source in brackets.
func said(e cause.Evidence) string {
	s := cut(e.Text, maxText-100)
	if s == "" {
		s = fmt.Sprintf("%g %s", e.Value, e.Unit)
	}
	if e.Source != "" {
		s += " [" + e.Source + "]"
	}
	return s
}

func (p *page) fix(fixes []string) {
	if len(fixes) == 0 {
		return
	}
	p.heading("fix")
	for _, f := range fixes {
		for _, s := range steps(f) {
			if s.command {
				p.piece("     ", s.text, copied)
			} else {
				p.paragraph("     ", "     ", s.text, none)
			}
		}
	}
}

func (p *page) links(urls []string) {
	if len(urls) == 0 {
		return
	}
	p.heading("see")
	for _, u := range urls {
		p.piece("     ", u, dim)
	}
}
