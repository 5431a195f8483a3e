package top

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// Plain writes frames as lines, for a terminal whose cursor cannot be moved (TERM=dumb).
type Plain struct {
	Style layout.Style
	said  string // the last verdict
}

// Lines are a frame in a line or two, and its verdict where it says something else than the one before.
func (p *Plain) Lines(f Frame) string {
	if f.Time.IsZero() {
		return ""
	}
	page := layout.New(p.Style)
	whose, n := "your calls", f.Users
	if f.UsersUnseen != "" {
		whose, n = "slowpath's own calls", f.Own
	}
	facts := []string{
		f.Time.Format("15:04:05 UTC") + " " + whose + " " + rate(n.perSecond()) + "/s",
		slowOf(n) + " slow", count(n.Failed) + " failed",
	}
	if n.Calls > 0 {
		facts = append(facts, "p50 "+format.Duration(n.P50Ns), "p99 "+format.Duration(n.P99Ns),
			"worst "+format.Duration(n.MaxNs))
	}
	page.Facts("", facts, layout.None)
	if v := f.Verdict; v != nil && v.Diagnosis.Summary != p.said {
		p.said = v.Diagnosis.Summary
		head := fmt.Sprintf("verdict of the last %s: ", format.Interval(v.Of.Round(time.Second)))
		page.Paragraph("", "  ", head+p.said, paintOf(v.Diagnosis.Verdict))
	}
	return strings.TrimRight(string(page.Bytes()), "\n") + "\n"
}
