package report

import (
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/report/layout"
)

// maxCosts bounds the lines of the watch's cost: there is one per node.
const maxCosts = 8

// cost shows what the watch itself took.
func (p *page) cost(facts []cause.Evidence) {
	if len(facts) == 0 {
		return
	}
	p.Section("Cost of this watch")
	for _, e := range facts[:min(len(facts), maxCosts)] {
		p.Paragraph("  ", "  ", e.Text, layout.Dim)
	}
	if n := len(facts) - maxCosts; n > 0 {
		p.More("  ", n)
	}
}
