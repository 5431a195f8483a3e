package top

import (
	"cmp"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// pane is one of the lists.
type pane int

const (
	paneCalls pane = iota
	paneCallers
	paneCommands
	paneWaits
	panes
)

// paneNames are short names, and paneTitles say also of what time a list is.
var (
	paneNames  = [panes]string{"slow calls", "callers", "commands", "waits"}
	paneTitles = [panes]string{
		"slow calls, the slowest of each stall", "callers, of 15 minutes", "commands, of the last minute",
		"who waits for whom, of the last minute",
	}
)

// matches reports whether one of the texts has the filter in it.
func matches(filter string, texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(strings.ToLower(t), strings.ToLower(filter)) {
			return true
		}
	}
	return false
}

// callsOf, callersOf, commandsOf and waitsOf are the rows of a frame that a filter lets pass.
func callsOf(f Frame, filter string) []Call {
	return passed(f.Calls, filter, func(c Call) []string { return []string{c.Row.Op, c.Row.Client, c.Row.Conn} })
}

func callersOf(f Frame, filter string) []Caller {
	return passed(f.Callers, filter, func(c Caller) []string { return []string{c.Name} })
}

func commandsOf(f Frame, filter string) []Command {
	return passed(f.Commands, filter, func(c Command) []string { return []string{c.Op} })
}

func waitsOf(f Frame, filter string) []Wait {
	return passed(f.Waits, filter, func(w Wait) []string { return []string{w.Culprit} })
}

func passed[T any](rows []T, filter string, texts func(T) []string) []T {
	if filter == "" {
		return rows
	}
	var out []T
	for _, r := range rows {
		if matches(filter, texts(r)...) {
			out = append(out, r)
		}
	}
	return out
}

// rowsOf is how many rows a list has.
func rowsOf(p pane, f Frame, filter string) int {
	switch p {
	case paneCalls:
		return len(callsOf(f, filter))
	case paneCallers:
		return len(callersOf(f, filter))
	case paneCommands:
		return len(commandsOf(f, filter))
	}
	return len(waitsOf(f, filter))
}

// list draws the heads and rows of a list into a block. at is the row under the cursor, -1 for none, and first the one
// at the top.
func (s *screen) list(p pane, m *Model, width, height int) []string {
	columns, rows, empty := s.cells(p, m)
	if len(rows) == 0 {
		return block(s.wrapped(empty, width), width, height)
	}
	at := -1
	if m.pane == p {
		at = m.cursor(p)
	}
	first := scrolled(at, len(rows), height-1)
	rows = rows[first:min(len(rows), first+max(0, height-1))]
	return block(s.table(width, columns, rows, at-first), width, height)
}

// scrolled is the first row to be shown, so that the cursor is among them.
func scrolled(at, rows, room int) int {
	if at < room || room <= 0 {
		return 0
	}
	return min(at-room+1, max(0, rows-room))
}

func (s *screen) wrapped(text string, width int) []string {
	var lines []string
	for _, l := range layout.Wrap(s.p.Text(text), width-2) {
		lines = append(lines, "  "+s.p.In(layout.Dim, l))
	}
	return lines
}

func (s *screen) cells(p pane, m *Model) (columns []column, rows [][]string, empty string) {
	switch p {
	case paneCalls:
		columns, rows, empty = s.callCells(m)
	case paneCallers:
		columns, rows, empty = s.callerCells(m)
	case paneCommands:
		columns, rows, empty = s.commandCells(m)
	default:
		columns, rows, empty = s.waitCells(m)
	}
	if m.filter != "" && len(rows) == 0 {
		empty = "nothing matches the filter; esc shows all again"
	}
	return columns, rows, empty
}

func (s *screen) callCells(m *Model) (columns []column, rows [][]string, empty string) {
	columns = []column{
		{head: "TIME"},
		{head: "COMMAND"},
		{head: "TOOK", right: true},
		{head: "CALLS", right: true, drop: 1},
		{head: "CALLER", flex: true, drop: 2},
		{head: "WAITED FOR", flex: true},
	}
	const longOp = 16
	for _, c := range callsOf(m.frame, m.filter) {
		rows = append(rows, []string{
			timeOf(c.Row.IntendedNs).Format("15:04:05"), s.p.Shorten(s.p.Text(cmp.Or(c.Row.Op, "?")), longOp),
			s.p.Text(format.Duration(c.Ns())), decimal(c.Others + 1), s.p.Text(callerOf(c)), s.p.Text(waitedFor(c)),
		})
	}
	return columns, rows, "no call took " + format.Brief(m.frame.SlowNs) + " or more"
}

// callerOf is the process that made a call, else the address of its client.
func callerOf(c Call) string {
	if c.Row.Source != "" && c.Row.Source == ownSource {
		return "slowpath's own"
	}
	return cmp.Or(c.Row.Client, c.Row.Conn)
}

// waitedFor is where most of the time of a call went.
func waitedFor(c Call) string {
	best, ok := longest(c.Segments)
	if !ok {
		return "not seen"
	}
	return placeOf(best.actor, best.state, best.culprit)
}

// placeOf is a state and what was waited for.
func placeOf(actor, state, culprit string) string {
	name := report.StateName(actor, state)
	if culprit == "" {
		return name
	}
	return name + ": " + culprit
}

func (s *screen) callerCells(m *Model) (columns []column, rows [][]string, empty string) {
	columns = []column{
		{head: "CALLER", flex: true},
		{head: "CALLS/S", right: true},
		{head: "SLOW", right: true},
		{head: "LOST", right: true, drop: 1},
	}
	for _, c := range callersOf(m.frame, m.filter) {
		lost := ""
		if c.LostNs > 0 {
			lost = s.p.Text(format.Duration(c.LostNs))
		}
		rows = append(rows, []string{s.p.Text(c.Name), rate(c.PerSecond), count(c.Slow), lost})
	}
	return columns, rows, unseenOr(m.frame, "no caller was seen yet")
}

func (s *screen) commandCells(m *Model) (columns []column, rows [][]string, empty string) {
	columns = []column{
		{head: "COMMAND", flex: true},
		{head: "CALLS/S", right: true},
		{head: "P50", right: true, drop: 2},
		{head: "P99", right: true},
		{head: "WORST", right: true, drop: 1},
		{head: "SERVER", flex: true, drop: 3},
	}
	if m.frame.Nodes < 2 {
		columns = columns[:len(columns)-1]
	}
	for _, c := range commandsOf(m.frame, m.filter) {
		row := []string{
			s.p.Text(c.Op), rate(c.perSecond()), s.duration(c.P50Ns), s.duration(c.P99Ns), s.duration(c.MaxNs),
			s.p.Text(c.Node),
		}
		rows = append(rows, row[:len(columns)])
	}
	return columns, rows, unseenOr(m.frame, "no command was seen in the last minute")
}

func (s *screen) waitCells(m *Model) (columns []column, rows [][]string, empty string) {
	columns = []column{
		{head: "SHARE", right: true},
		{head: "TIME", right: true, drop: 1},
		{head: "CALLS", right: true, drop: 2},
		{head: "WHERE, AND WAITED FOR WHAT", flex: true},
	}
	for _, w := range waitsOf(m.frame, m.filter) {
		rows = append(rows, []string{
			format.Percent(w.Share), s.p.Text(format.Duration(w.Ns)), count(w.Calls),
			s.p.Text(placeOf(w.Actor, w.State, w.Culprit)),
		})
	}
	return columns, rows, "in the last minute no call took " + format.Brief(m.frame.SlowNs) + " or more"
}

// unseenOr says why a list has no rows.
func unseenOr(f Frame, otherwise string) string {
	if f.UsersUnseen != "" {
		return "your calls are not seen: " + f.UsersUnseen
	}
	return otherwise
}

// duration is a measured time; none where there was no call.
func (s *screen) duration(ns int64) string {
	if ns <= 0 {
		return "-"
	}
	return s.p.Text(format.Duration(ns))
}

func rate(perSecond float64) string {
	if perSecond >= 100 {
		return format.Thousands(perSecond)
	}
	return format.Digits(perSecond)
}

func count(n int64) string { return format.Thousands(n) }
