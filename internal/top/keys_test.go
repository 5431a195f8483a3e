package top

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// press gives a model keys, by name or as text, and runs the commands that they lead to.
func press(t *testing.T, m Model, keys ...string) Model {
	t.Helper()
	for _, k := range keys {
		var msg tea.KeyPressMsg
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "right":
			msg = tea.KeyPressMsg{Code: tea.KeyRight}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "backspace":
			msg = tea.KeyPressMsg{Code: tea.KeyBackspace}
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		default:
			for _, r := range k {
				m = press1(t, m, tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		if msg.String() != k {
			t.Fatalf("the key %q is called %q", k, msg.String())
		}
		m = press1(t, m, msg)
	}
	return m
}

func press1(t *testing.T, m Model, msg tea.KeyPressMsg) Model {
	t.Helper()
	next, cmd := m.Update(msg)
	if cmd != nil {
		if answer := cmd(); answer != nil {
			next, _ = next.Update(answer)
		}
	}
	return next.(Model)
}

func has(t *testing.T, m Model, texts ...string) {
	t.Helper()
	screen := m.Screen()
	fits(t, "the screen", screen, m.width, m.height)
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			t.Errorf("no %q on:\n%s", text, screen)
		}
	}
}

func hasNot(t *testing.T, m Model, text string) {
	t.Helper()
	if strings.Contains(m.Screen(), text) {
		t.Errorf("%q is on:\n%s", text, m.Screen())
	}
}

// scenario is a frame of a recording of the corpus, on a terminal of 80x24.
func scenario(t *testing.T, actions Actions) (Model, Frame) {
	t.Helper()
	f := play(wholeRecording(t, "slow-command")).last(t)
	m, _ := NewModel(layout.Style{Width: 80, Unicode: true}, 24, actions).Update(f)
	return m.(Model), f
}

func TestPanes(t *testing.T) {
	m, _ := scenario(t, Actions{})
	has(t, m, "[1 slow calls]", "server busy: KEYS")
	has(t, press(t, m, "2"), "[2 callers]", "sp.grade", "LOST")
	has(t, press(t, m, "tab", "tab"), "[3 commands]", "HSET", "P99")
	has(t, press(t, m, "4"), "[4 waits]", "SHARE")
	has(t, press(t, m, "5"), "Verdict of the last", "judged in 123 ms", "Where the lost time passed")
	has(t, press(t, m, "5", "esc"), "[1 slow calls]")
	has(t, press(t, m, "?"), "Keys", "save what was seen")
	has(t, press(t, m, "?", "esc"), "[1 slow calls]")
}

func TestFilter(t *testing.T) {
	m, _ := scenario(t, Actions{})
	m = press(t, m, "/", "kEyx", "backspace", "s")
	has(t, m, "show only commands and callers with: kEys_")
	m = press(t, m, "enter")
	has(t, m, "FILTER kEys", "KEYS ")
	hasNot(t, m, "  SET ")
	has(t, press(t, m, "2"), "nothing matches the filter")
	m = press(t, m, "esc")
	has(t, m, "  17:07:")
	hasNot(t, m, "FILTER")
	// Enter on a command shows its calls; q is a letter while something is typed.
	has(t, press(t, m, "3", "enter"), "FILTER GET", "[1 slow calls]")
	has(t, press(t, m, "/", "q?5"), "with: q?5_")
}

func TestFreeze(t *testing.T) {
	m, f := scenario(t, Actions{})
	m = press(t, m, "space")
	has(t, m, "FROZEN at")
	f.Target, f.Time = "10.0.0.9:6379", f.Time.Add(time.Second)
	next, _ := m.Update(f)
	m = next.(Model)
	hasNot(t, m, "10.0.0.9")
	m = press(t, m, "space")
	has(t, m, "10.0.0.9")
	hasNot(t, m, "FROZEN")
}

// TestCursorStays: the cursor stays on its call while others come, and a call that is open stays open.
func TestCursorStays(t *testing.T) {
	m, f := scenario(t, Actions{})
	m = press(t, m, "down", "down")
	chosen := f.Calls[2]
	newer := Call{Number: f.Calls[0].Number + 1, Row: recording.Call{
		Source: recording.SourceTap, Op: "NEWER", IntendedNs: f.Calls[0].Row.EndNs, EndNs: f.Calls[0].Row.EndNs + 9e6,
	}}
	f.Calls = append([]Call{newer}, f.Calls...)
	next, _ := m.Update(f)
	if m = next.(Model); m.at[paneCalls] != 3 {
		t.Errorf("the cursor is at %d", m.at[paneCalls])
	}
	has(t, m, "NEWER")
	m = press(t, m, "enter")
	has(t, m, "took  where", chosen.Row.Op, chosen.Row.Conn)
	f.Calls = f.Calls[:1]
	next, _ = m.Update(f)
	has(t, next.(Model), chosen.Row.Conn)
	m = press(t, next.(Model), "esc")
	if m.at[paneCalls] != 0 {
		t.Errorf("the cursor is at %d of one call", m.at[paneCalls])
	}
	// A call of which nothing was seen, and the one beside another.
	has(t, press(t, m, "enter"), "where its time went was not seen")
	m, f = scenario(t, Actions{})
	has(t, press(t, m, "enter", "right"), f.Calls[1].Row.Conn)
}

func TestSave(t *testing.T) {
	var saved []string
	fail := error(nil)
	m, _ := scenario(t, Actions{SaveIn: "/srv", Save: func(path string) (string, error) {
		saved = append(saved, path)
		return "saved " + path, fail
	}})
	has(t, press(t, m, "s"), "save what was seen, in /srv, as: _")
	has(t, press(t, m, "s", "night", "enter"), "saved night.slowpath")
	has(t, press(t, m, "s", "a b.slowpath", "enter"), "saved a b.slowpath")
	has(t, press(t, m, "s", "enter"), "no name was given")
	press(t, m, "s", "x", "esc")
	fail = errors.New("/srv/night.slowpath exists already: \x1b[2Jname another file")
	has(t, press(t, m, "s", "night", "enter"), "not saved: /srv/night.slowpath exists already: name another file")
	if got := strings.Join(saved, " "); got != "night.slowpath a b.slowpath night.slowpath" {
		t.Errorf("saved: %s", got)
	}
}

func TestQuit(t *testing.T) {
	m, _ := scenario(t, Actions{})
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"?", "q"}, {"/", "ctrl+c"}} {
		if last := press(t, m, keys...); !last.ending {
			t.Errorf("%v does not end it", keys)
		}
	}
}

// TestHostileTexts: what others are called, and what they typed, cannot drive the terminal or break a line.
func TestHostileTexts(t *testing.T) {
	bad := "\x1b[2J\x1b]0;owned\x07\u202eevil\n接続接続接続" + strings.Repeat("👩\u200d🚀x", 400)
	m, f := scenario(t, Actions{})
	f.Target, f.Server = bad, bad
	f.Calls = []Call{{Number: 1, Row: recording.Call{
		Source: recording.SourceTap, Op: bad, Client: bad, Conn: bad, Node: bad, Error: bad, EndNs: 9e9,
	}, Segments: []recording.Segment{{Actor: bad, State: bad, Culprit: bad, ToNs: 9e9}}}}
	f.Callers = []Caller{{Name: bad, PerSecond: 1, Slow: 1, LostNs: 1}}
	f.Commands = []Command{{Node: bad, Op: bad, Numbers: Numbers{Seconds: 1, Calls: 1}}}
	f.Waits = []Wait{{Actor: bad, State: bad, Culprit: bad, Ns: 1, Calls: 1}}
	f.Nodes = 2
	f.Verdict.Failed = bad
	next, _ := m.Update(f)
	for _, size := range append(sizes, [2]int{40, 16}, [2]int{61, 23}) {
		for _, keys := range [][]string{{}, {"2"}, {"3"}, {"4"}, {"5"}, {"enter"}, {"?"}, {"/", "x"}} {
			sized, _ := next.(Model).Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			screen := press(t, sized.(Model), keys...).Screen()
			fits(t, strings.Join(keys, " "), screen, size[0], size[1])
			if strings.ContainsAny(screen, "\x1b\x07\u202e") {
				t.Errorf("%v: a text of others is not clean: %q", keys, screen)
			}
		}
	}
	sized, _ := next.(Model).Update(tea.PasteMsg{Content: "not asked for"})
	hasNot(t, sized.(Model), "not asked for")
	pasted, _ := press(t, next.(Model), "/").Update(tea.PasteMsg{Content: bad})
	has(t, pasted.(Model), "_")
}

// TestAnySize: no size breaks a line, also such that are not drawn for.
func TestAnySize(t *testing.T) {
	m, f := scenario(t, Actions{})
	unseen := f
	unseen.UsersUnseen = "root is needed, or cap_bpf and cap_perfmon"
	for _, frame := range []Frame{f, unseen, {}} {
		next, _ := m.Update(frame)
		for width := 1; width <= 250; width += 19 {
			for _, height := range []int{1, 3, 15, 16, 22, 24, 33, 34, 43, 44, 70} {
				sized, _ := next.(Model).Update(tea.WindowSizeMsg{Width: width, Height: height})
				fits(t, "a screen", sized.(Model).Screen(), width, height)
				fits(t, "a page", press(t, sized.(Model), "5").Screen(), width, height)
			}
		}
	}
}
