package top

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/report/layout"
)

// Actions are what a key can have done beside the screen. They are called in the background.
type Actions struct {
	// Save writes what was seen so far into a new file, and says in a few words what it wrote.
	Save func(path string) (said string, err error)
	// Judge has the last seconds judged now.
	Judge func()
	// SaveIn is the directory of names that are not absolute.
	SaveIn string
}

// Model is the state of the screen: what was seen last, and what the keys have chosen. Update and View are pure
// functions of it.
type Model struct {
	style   layout.Style
	actions Actions

	width, height int
	frame         Frame
	newest        *Frame // while the screen is frozen: what is not shown yet
	frozen        bool
	verdict       *Verdict

	pane     pane
	at       [panes]int // the row under the cursor
	call     uint64     // the number of the slow call under the cursor; 0: the newest
	filter   string
	page     page
	opened   Call // of pageCall
	pageLine int  // the first line of the page that is shown
	ask      question
	input    string
	notice   string // what a key has led to
	saving   bool
	ending   bool // the watch ends
}

// page covers the lists.
type page int

const (
	pageNone page = iota
	pageHelp
	pageCall
	pageVerdict
)

// question is what the last line asks for.
type question int

const (
	askNothing question = iota
	askFilter
	askFile
)

// NewModel makes a screen for a terminal of a style and a size, which a tea.WindowSizeMsg changes.
func NewModel(style layout.Style, height int, actions Actions) Model {
	return Model{style: style, actions: actions, width: style.Width, height: height}
}

// Saved is the message that a recording was saved.
type Saved struct {
	Said string
	Err  error
}

// Ending is the message that the watch ends.
type Ending struct{}

// Init implements tea.Model.
func (Model) Init() tea.Cmd { return nil }

// Update implements tea.Model. Messages are frames, verdicts, keys and sizes.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case Frame:
		return m.next(msg), nil
	case Verdict:
		return m.judged(msg), nil
	case Saved:
		m.saving, m.notice = false, msg.Said
		if msg.Err != nil {
			m.notice = "not saved: " + layout.OneLine(msg.Err.Error())
		}
	case Ending:
		m.ending = true
		return m, tea.Quit
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		if m.ask != askNothing {
			m.input = bounded(m.input + layout.OneLine(msg.Content))
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m, nil
}

// next takes a frame. While the screen is frozen it waits.
func (m Model) next(f Frame) Model {
	if f.Verdict == nil {
		f.Verdict = m.verdict
	}
	if m.frozen {
		m.newest = &f
		return m
	}
	m.frame = f
	return m.follow()
}

func (m Model) judged(v Verdict) Model {
	m.verdict = &v
	if !m.frozen {
		m.frame.Verdict = &v
	} else if m.newest != nil {
		m.newest.Verdict = &v
	}
	return m
}

// follow has the cursor stay on its slow call while others come.
func (m Model) follow() Model {
	calls := callsOf(m.frame, m.filter)
	if chosen := m.call; chosen != 0 {
		i := slices.IndexFunc(calls, func(c Call) bool { return c.Number == chosen })
		if m.at[paneCalls] = max(0, i); i < 0 { // it is older than those that are kept
			m.call = 0
		}
	}
	for p := range panes {
		m.at[p] = max(0, min(m.at[p], rowsOf(p, m.frame, m.filter)-1))
	}
	return m
}

// cursor is the row under the cursor of a list; -1 where there is none.
func (m *Model) cursor(p pane) int {
	if m.page != pageNone || rowsOf(p, m.frame, m.filter) == 0 {
		return -1
	}
	return m.at[p]
}

// maxInput bounds what can be typed, in bytes.
const maxInput = 240

func bounded(s string) string {
	if len(s) > maxInput {
		return strings.ToValidUTF8(s[:maxInput], "")
	}
	return s
}

// age is how old the verdict on the screen is.
func (m Model) age(v Verdict) time.Duration { return max(0, m.frame.Time.Sub(v.At)) }
