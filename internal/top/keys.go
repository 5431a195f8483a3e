package top

import (
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/report/layout"
)

// key does what a key is for.
func (m Model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	m.notice = ""
	name := k.String()
	switch {
	case name == "ctrl+c":
		return m.quit()
	case m.ask != askNothing:
		return m.typed(k)
	case name == "q":
		return m.quit()
	case m.page != pageNone:
		return m.onPage(name), nil
	}
	return m.onLists(name)
}

func (m Model) quit() (tea.Model, tea.Cmd) {
	m.ending = true
	return m, tea.Quit
}

// onLists is a key while the lists are shown.
func (m Model) onLists(name string) (tea.Model, tea.Cmd) {
	if p := strings.Index("1234", name); len(name) == 1 && p >= 0 {
		m.pane = pane(p)
		return m, nil
	}
	switch name {
	case "?", "h", "f1":
		m.page, m.pageLine = pageHelp, 0
	case "5", "v":
		m.page, m.pageLine = pageVerdict, 0
	case "r":
		return m.askVerdict()
	case "tab", "right", "l":
		m.pane = (m.pane + 1) % panes
	case "shift+tab", "left":
		m.pane = (m.pane + panes - 1) % panes
	case "f", "space", " ":
		return m.freeze(), nil
	case "/":
		m.ask, m.input = askFilter, m.filter
	case "s":
		return m.askToSave()
	case "esc":
		m.filter, m.call = "", 0
		m = m.follow()
	case "enter":
		return m.open(), nil
	default:
		return m.move(name), nil
	}
	return m, nil
}

func (m Model) askVerdict() (tea.Model, tea.Cmd) {
	judge := m.actions.Judge
	if judge == nil {
		return m, nil
	}
	m.notice = "judging the last seconds"
	return m, func() tea.Msg { judge(); return nil }
}

func (m Model) askToSave() (tea.Model, tea.Cmd) {
	switch {
	case m.actions.Save == nil:
		m.notice = "nothing can be saved here"
	case m.saving:
		m.notice = "a recording is being saved: wait for its end"
	default:
		m.ask, m.input = askFile, ""
	}
	return m, nil
}

// freeze stops the screen, or shows what has happened since.
func (m Model) freeze() Model {
	m.frozen = !m.frozen
	if !m.frozen && m.newest != nil {
		f := *m.newest
		m.newest = nil
		return m.next(f)
	}
	return m
}

// move moves the cursor of the list.
func (m Model) move(name string) Model {
	rows := rowsOf(m.pane, m.frame, m.filter)
	to := moved(name, m.at[m.pane], rows, m.listRoom())
	if to == m.at[m.pane] || rows == 0 {
		return m
	}
	m.at[m.pane] = to
	if m.pane == paneCalls {
		if m.call = 0; to > 0 {
			m.call = callsOf(m.frame, m.filter)[to].Number
		}
	}
	return m
}

// moved is the row that a key leads to.
func moved(name string, at, rows, page int) int {
	switch name {
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pgup":
		at -= max(1, page)
	case "pgdown":
		at += max(1, page)
	case "home", "g":
		at = 0
	case "end", "G":
		at = rows - 1
	}
	return max(0, min(at, rows-1))
}

// open shows the call under the cursor, or the calls of the caller or command under it.
func (m Model) open() Model {
	at := m.at[m.pane]
	if rowsOf(m.pane, m.frame, m.filter) == 0 {
		return m
	}
	switch m.pane {
	case paneCalls:
		m.opened = callsOf(m.frame, m.filter)[at]
		m.page, m.pageLine, m.call = pageCall, 0, m.opened.Number
		return m
	case paneCallers:
		m.filter = callersOf(m.frame, m.filter)[at].Name
	case paneCommands:
		m.filter = commandsOf(m.frame, m.filter)[at].Op
	default:
		return m
	}
	m.pane, m.call = paneCalls, 0
	m.at = [panes]int{}
	return m.follow()
}

// onPage is a key while a page covers the lists.
func (m Model) onPage(name string) Model {
	switch name {
	case "esc", "enter", "backspace":
		m.page = pageNone
		return m
	case "?":
		m.page, m.pageLine = pageHelp, 0
	case "5", "v":
		m.page, m.pageLine = pageVerdict, 0
	case "1", "2", "3", "4":
		m.page, m.pane = pageNone, pane(name[0]-'1')
	case "f", "space", " ":
		return m.freeze()
	case "left", "right":
		return m.neighbour(name)
	}
	lines := len(m.pageLines())
	room := m.pageRoom()
	m.pageLine = min(moved(name, m.pageLine, lines, room), max(0, lines-room))
	return m
}

// neighbour opens the slow call before or after the one that is open.
func (m Model) neighbour(name string) Model {
	calls := callsOf(m.frame, m.filter)
	for i, c := range calls {
		to := i + 1 // older
		if name == "left" {
			to = i - 1
		}
		if m.page == pageCall && c.Number == m.opened.Number && to >= 0 && to < len(calls) {
			m.at[paneCalls], m.opened, m.call, m.pageLine = to, calls[to], calls[to].Number, 0
			return m
		}
	}
	return m
}

// typed is a key while the last line asks for something.
func (m Model) typed(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k.String() {
	case "esc":
		m.ask = askNothing
	case "backspace", "ctrl+h":
		if r := []rune(m.input); len(r) > 0 {
			m.input = string(r[:len(r)-1])
		}
	case "ctrl+u":
		m.input = ""
	case "enter":
		return m.answered()
	default:
		m.input = bounded(m.input + layout.Clean(k.Key().Text))
	}
	return m, nil
}

func (m Model) answered() (tea.Model, tea.Cmd) {
	asked, text := m.ask, strings.TrimSpace(m.input)
	m.ask = askNothing
	if asked == askFilter {
		m.filter, m.call, m.at = text, 0, [panes]int{}
		return m.follow(), nil
	}
	if text == "" {
		m.notice = "not saved: no name was given"
		return m, nil
	}
	if !strings.Contains(filepath.Base(text), ".") {
		text += ".slowpath"
	}
	m.saving, m.notice = true, "saving "+text
	save := m.actions.Save
	return m, func() tea.Msg {
		said, err := save(text)
		return Saved{said, err}
	}
}
