package results

import (
	"slowpath/internal/load/bench"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/report/layout"
)

// loadLimit says what limited the load. It is an alarm where that is the generator: the result is not that of the
// server.
func (p *page) loadLimit(r *bench.Result) {
	if r.LimitedBy == "" {
		return // a result of before this was known
	}
	colour := layout.None
	head := "limited by: "
	switch {
	case r.Bottleneck.GeneratorLimited && r.LimitedBy == bottleneck.BySharedCPU:
		colour, head = layout.Alarm, "LIMITED BY THE GENERATOR'S HOST: "
	case r.Bottleneck.GeneratorLimited:
		colour, head = layout.Alarm, "LIMITED BY THE GENERATOR: "
	}
	p.Paragraph("", "", head+r.Bottleneck.Sentence, colour)
	for _, b := range r.Bottleneck.Notes {
		p.Paragraph("  ", "  ", b, layout.Dim)
	}
}
