package results

import (
	"fmt"

	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/report/layout"
)

// mostSkipped kinds of commands are named in the text; the document has all.
const mostSkipped = 8

// replay says what of a log was sent, and what of it was not.
func (p *page) replay(r *bench.Replay) {
	if r == nil {
		return
	}
	p.Gap()
	p.Paragraph("replay: ", "        ", fmt.Sprintf("%s of %s requests of %s, %s long, %s", format.Thousands(r.Sent),
		format.Thousands(r.Requests), format.Count(r.Clients, "client"),
		format.Duration(r.LengthNs), paceOf(r)), layout.None)
	for i, s := range r.Skipped {
		if i == mostSkipped {
			p.Paragraph("  ", "  ", fmt.Sprintf("and %s for other reasons", format.Count(len(r.Skipped)-i, "command")),
				layout.Dim)
			break
		}
		p.Paragraph("  left out: ", "            ", fmt.Sprintf("%s × %s: %s", format.Thousands(s.Count),
			layout.OneLine(s.Command),
			s.Why), layout.Dim)
	}
	for _, n := range r.Notes {
		p.Paragraph("  ", "  ", n, layout.Dim)
	}
}

func paceOf(r *bench.Replay) string {
	switch r.Speed {
	case 0:
		return "without pace"
	case 1:
		return "at the log's own pace"
	}
	return fmt.Sprintf("at %s times the log's pace", format.Rounded(r.Speed))
}
