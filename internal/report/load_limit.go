package report

import (
	"slowpath/internal/load/bench"
	"slowpath/internal/load/bottleneck"
)

// loadLimit says what limited the load. One that the generator limited stands out: its figures are not those of the
// server.
func (p *page) loadLimit(r *bench.Result) {
	if r.LimitedBy == "" {
		return // a result of before this was known
	}
	colour := none
	head := "limited by: "
	switch {
	case r.Bottleneck.GeneratorLimited && r.LimitedBy == bottleneck.BySharedCPU:
		colour, head = alarm, "LIMITED BY THE GENERATOR'S HOST: "
	case r.Bottleneck.GeneratorLimited:
		colour, head = alarm, "LIMITED BY THE GENERATOR: "
	}
	p.paragraph("", "", head+r.Bottleneck.Sentence, colour)
	for _, b := range r.Bottleneck.Notes {
		p.paragraph("  ", "  ", b, dim)
	}
}
