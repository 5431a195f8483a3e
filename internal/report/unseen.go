package report

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// unseen lists what could not be seen, why, and how to enable it.
func (p *page) unseen(d verdict.Diagnosis) {
	spots := spotsOf(d)
	if len(spots) == 0 {
		return
	}
	p.Section("What could not be seen")
	for _, b := range spots[:min(len(spots), layout.MaxSpots)] {
		s := whatOf(b)
		if b.Why != "" {
			s += " — " + b.Why
		}
		if _, _, grants := recording.Grant(b.Enable); b.Enable != "" && !grants {
			s += "; to see it: " + b.Enable
		}
		p.Paragraph("  - ", "    ", s, layout.None)
	}
	if n := len(spots) - layout.MaxSpots; n > 0 {
		p.More("    ", n)
	}
	p.grants(spots)
}

// told lists what texts say of a server.
func (p *page) told(facts []cause.Evidence) {
	if len(facts) == 0 {
		return
	}
	p.Section("What the texts say")
	for _, e := range facts {
		p.Paragraph("  - ", "    ", e.Text, layout.None)
	}
}

// grants shows the commands that give users of slowpath the rights that they lack.
func (p *page) grants(spots []recording.BlindSpot) {
	var commands []string
	for _, b := range spots {
		if _, _, ok := recording.Grant(b.Enable); ok && !slices.Contains(commands, b.Enable) {
			commands = append(commands, b.Enable)
		}
	}
	for _, c := range commands {
		p.Paragraph("  ", "  ", "To see what the server refused, let the user have the rights:", layout.None)
		p.Piece("    ", c, layout.Copied)
	}
}

// unseenBriefly is the same in one paragraph, for a system in which nothing is to be looked for.
func (p *page) unseenBriefly(d verdict.Diagnosis) {
	var parts []string
	for _, b := range spotsOf(d) {
		s := whatOf(b)
		if b.Why != "" {
			s += " (" + b.Why + ")"
		}
		parts = append(parts, s)
	}
	if len(parts) > 0 {
		p.Paragraph("", "", "Not seen: "+strings.Join(parts, "; ")+".", layout.Dim)
		p.grants(spotsOf(d))
	}
}

// whatOf says what was not seen, and how much of it.
func whatOf(b recording.BlindSpot) string {
	if b.Share == 0 {
		return b.What
	}
	return b.What + ", " + format.Percent(b.Share)
}

// spotsOf are the blind spots, and the sources that took no part for a reason that no blind spot gives.
func spotsOf(d verdict.Diagnosis) []recording.BlindSpot {
	out := append([]recording.BlindSpot(nil), d.BlindSpots...)
	given := map[string]bool{}
	for _, b := range d.BlindSpots {
		given[b.Why] = true
	}
	for _, s := range d.Sources {
		if !s.Used && !given[s.Why] {
			out = append(out, recording.BlindSpot{What: plainSource(s.Name), Why: s.Why})
		}
	}
	return out
}
