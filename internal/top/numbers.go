package top

import (
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// numbers are those of the users' calls and of slowpath's own.
func (m Model) numbers(s *screen, width int) []string {
	f := m.frame
	if f.Time.IsZero() {
		return []string{"", "  waiting for the first whole second"}
	}
	rows := []struct {
		name string
		Numbers
	}{{"your calls now", f.Users}, {"  last minute", f.UsersMinute}, {"own, last minute", f.OwnMinute}}
	if width < foldWidth {
		return m.foldedNumbers(s, width)
	}
	columns := []column{
		{head: ""},
		{head: "CALLS/S", right: true},
		{head: "P50", right: true, drop: 1},
		{head: "P99", right: true},
		{head: "WORST", right: true},
		{head: "SLOW", right: true},
		{head: "FAILED", right: true},
	}
	var cells [][]string
	for i, r := range rows {
		if f.UsersUnseen != "" && i < 2 {
			continue
		}
		cells = append(cells, []string{
			r.name, rate(float64(r.Calls) / float64(max(1, r.Seconds))), s.duration(r.P50Ns), s.duration(r.P99Ns),
			s.duration(r.MaxNs), slowOf(r.Numbers), count(r.Failed),
		})
	}
	lines := s.unmarked(min(width, numbersWidth), columns, cells)
	if f.UsersUnseen != "" {
		lines = append(lines, s.unseenUsers(f, width)...)
	}
	return lines
}

// numbersWidth keeps the columns of the numbers together on a wide screen.
const numbersWidth = 100

// unseenUsers says in two lines why there are no numbers of the users' calls.
func (s *screen) unseenUsers(f Frame, width int) []string {
	return block(layout.Wrap(s.p.Text("your calls are not seen: "+f.UsersUnseen), width), width, 2)
}

// slowOf is how many calls were slow, and which share of all.
func slowOf(n Numbers) string {
	if n.Slow == 0 || n.Calls == 0 {
		return count(n.Slow)
	}
	return count(n.Slow) + " (" + format.Percent(float64(n.Slow)/float64(n.Calls)) + ")"
}

// foldedNumbers are the numbers on a narrow terminal.
func (m Model) foldedNumbers(s *screen, width int) []string {
	f := m.frame
	fold := func(name string, n Numbers) []string {
		return []string{
			s.p.Shorten(name+" "+rate(n.perSecond())+"/s, "+slowOf(n)+" slow, "+
				count(n.Failed)+" failed", width),
			s.p.Shorten(s.p.Text("  p50 "+s.duration(n.P50Ns)+" · p99 "+s.duration(n.P99Ns)+" · worst "+
				s.duration(n.MaxNs)), width),
		}
	}
	if f.UsersUnseen != "" {
		return append(fold("own, last minute", f.OwnMinute), s.unseenUsers(f, width)...)
	}
	return append(fold("your calls", f.Users), fold("last minute", f.UsersMinute)...)
}
