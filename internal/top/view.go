package top

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// From this size on all lists are on the screen side by side; below, one at a time.
const (
	wideWidth  = 110
	wideHeight = 34
	// foldWidth is the width from which on the numbers are a table.
	foldWidth = 72
	// heatHeight and bigHeatHeight are the heights from which on there is a map of four and of eight rows.
	heatHeight    = 22
	bigHeatHeight = 44
)

// View implements tea.Model.
func (m Model) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	v.WindowTitle = "slowpath top " + layout.OneLine(m.frame.Target)
	return v
}

// Screen is the text of the screen: no more lines than the terminal has, none longer than it is wide.
func (m Model) Screen() string {
	if m.ending {
		return "ending the watch"
	}
	width, height := max(m.width, LeastWidth), max(m.height, LeastHeight)
	s := newScreen(m.style, width)
	lines := []string{m.title(s, width)}
	foot := m.foot(s, width)
	if m.page != pageNone {
		all := m.pageLines()
		first := max(0, min(m.pageLine, len(all)-m.pageRoom()))
		lines = append(lines, block(all[first:], width, m.pageRoom()+1-len(foot))...)
	} else {
		lines = append(lines, m.head(s, width, height)...)
		lines = append(lines, m.lists(s, width, height-len(lines)-len(foot))...)
	}
	lines = append(lines, foot...)
	for i, l := range lines {
		lines[i] = strings.TrimRight(cut(l, m.width), " ")
	}
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

// title is the first line: what is watched, and since when.
func (m Model) title(s *screen, width int) string {
	f := m.frame
	var parts []string
	if width >= foldWidth {
		parts = append(parts, "slowpath top")
	}
	for _, t := range []string{f.Target, f.Server} {
		if t != "" {
			parts = append(parts, t)
		}
	}
	if f.Nodes > 1 {
		parts = append(parts, format.Count(f.Nodes, "node"))
	}
	if f.Watched > 0 {
		parts = append(parts, "for "+f.Watched.Round(time.Second).String())
	}
	clock, paint := f.Time.Format("15:04:05 UTC"), layout.None
	if f.Time.IsZero() {
		clock = ""
	}
	if m.frozen {
		clock, paint = "FROZEN at "+clock, layout.Doubt
	}
	left := s.p.Text(strings.Join(parts, " · "))
	room := width - layout.Width(clock) - 1
	left = layout.Pad(s.p.Shorten(left, room), room)
	return s.p.In(layout.Bold, left) + " " + s.p.In(paint, clock)
}

// head is what is above the lists: the numbers, the map, the verdict.
func (m Model) head(s *screen, width, height int) []string {
	lines := m.numbers(s, width)
	switch {
	case m.frame.Time.IsZero():
		return append(lines, "")
	case height >= bigHeatHeight:
		lines = append(append(lines, ""), s.heatMap(m.frame, 8, width)...)
	case height >= heatHeight:
		lines = append(lines, s.heatMap(m.frame, 4, width)...)
	}
	verdictLines := m.verdictLines(s, width, verdictRoom(height))
	if height >= wideHeight { // apart from what is around it
		return append(append(append(lines, ""), verdictLines...), "")
	}
	return append(lines, verdictLines...)
}

// verdictRoom is how many lines the verdict has.
func verdictRoom(height int) int {
	switch {
	case height >= bigHeatHeight:
		return 9
	case height >= wideHeight:
		return 7
	case height >= heatHeight:
		return 6
	}
	return 3
}

// lists are the lists in so many lines: all of them where there is room, else the chosen one.
func (m Model) lists(s *screen, width, height int) []string {
	if height <= 1 {
		return nil
	}
	if width < wideWidth || m.height < wideHeight {
		lines := []string{m.tabs(s, width)}
		return append(lines, s.list(m.pane, &m, width, height-1)...)
	}
	left := (width - gap) * 3 / 5
	right := width - gap - left
	upper := (height + 1) / 2
	lines := beside(m.pane1(s, paneCalls, left, upper), left, m.pane1(s, paneWaits, right, upper))
	half := (width - gap) / 2
	return append(lines, beside(m.pane1(s, paneCallers, half, height-upper), half,
		m.pane1(s, paneCommands, width-gap-half, height-upper))...)
}

// pane1 is one list below its title.
func (m Model) pane1(s *screen, p pane, width, height int) []string {
	lines := []string{m.tab(s, p, paneTitles[p])}
	return append(block(lines, width, 1), s.list(p, &m, width, height-1)...)
}

// tabs are the names of all lists, with the number of the key that shows each.
func (m Model) tabs(s *screen, width int) string {
	var all []string
	for p := range panes {
		all = append(all, m.tab(s, p, paneNames[p]))
	}
	return cut(strings.Join(append(all, "5 verdict"), "  "), width)
}

func (m Model) tab(s *screen, p pane, name string) string {
	text := decimal(int(p)+1) + " " + name
	if p == m.pane {
		return s.p.In(layout.Bold, "["+text+"]")
	}
	return text
}

// listRoom is about how many rows of a list are on the screen.
func (m Model) listRoom() int { return max(1, m.height/3) }

// foot is the last line: what is asked for, which keys there are, and the cost; or what a key has led to, which may
// take more lines.
func (m Model) foot(s *screen, width int) []string {
	const most = 3 // lines
	switch m.ask {
	case askFilter:
		return []string{s.question("show only commands and callers with: ", m.input, width)}
	case askFile:
		where := s.p.Shorten(s.p.Text(m.actions.SaveIn), width/3)
		return []string{s.question("save what was seen, in "+where+", as: ", m.input, width)}
	}
	if m.notice != "" {
		lines := layout.Wrap(s.p.Text(m.notice), width)
		for i, l := range lines {
			lines[i] = s.p.In(layout.Bold, l)
		}
		return lines[:min(most, len(lines))]
	}
	keys := "? help  q quit  / filter  space freeze  enter open  s save"
	switch {
	case m.page != pageNone:
		keys = "esc back  arrows scroll  ? help  q quit"
	case m.filter != "":
		keys = "FILTER " + s.p.Shorten(s.p.Text(m.filter), width/3) + " (esc: all)  ? help  q quit"
	}
	return []string{s.ends(keys, m.cost(), width, layout.Dim)}
}

func (s *screen) question(asks, input string, width int) string {
	room := width - layout.Width(asks) - 1
	text := s.p.Whole(input)
	for layout.Width(text) > max(1, room) { // the end is where one types
		text = string([]rune(text)[1:])
	}
	return s.p.In(layout.Bold, asks) + text + "_"
}

// cost is what slowpath takes of this host.
func (m Model) cost() string {
	if m.frame.Time.IsZero() {
		return ""
	}
	return "cost: " + format.Percent(m.frame.Cost.Process) + " CPU"
}
