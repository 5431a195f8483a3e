// Package report shows a diagnosis, as text for a person and as JSON for programs. It computes nothing: what it prints
// is in the diagnosis, shortened to what fits a screen.
//
// Most texts of a diagnosis come from the network or from files of others (names of clients, processes and cgroups).
// Nothing of them reaches a terminal before clean has taken out what could drive it.
package report

import (
	"io"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

// Text writes a diagnosis for a person: the verdict first, then where the time went, the findings with proof and fix,
// the worst calls, what could not be seen and what the watch cost. Sections without content are left out. No line is
// longer than the style's width, except commands and links, which are printed in one piece so that they can be copied.
func Text(w io.Writer, d verdict.Diagnosis, s layout.Style) error {
	p := newPage(s)
	p.headline(d)
	p.hops(d.Hops)
	if d.Verdict == verdict.Healthy && len(d.Findings) == 0 {
		p.callersTime(d)
		p.onCPU(d.OnCPU)
		p.unseenBriefly(d)
	} else {
		p.account(statesOf(d))
		p.findings(d.Findings)
		p.lostTime(d)
		p.worst(d)
		p.callersTime(d)
		p.onCPU(d.OnCPU)
		p.told(d.Told)
		p.unseen(d)
	}
	p.cost(d.Cost)
	return p.To(w, "the report")
}

// Brief writes what is read first: the verdict, is it proven, and what to type.
func Brief(w io.Writer, d verdict.Diagnosis, s layout.Style) error {
	p := newPage(s)
	p.headline(d)
	return p.To(w, "the report")
}

// page is a report that is being laid out.
type page struct{ *layout.Page }

func newPage(s layout.Style) *page { return &page{layout.New(s)} }
