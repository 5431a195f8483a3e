package top

import (
	"bytes"
	"io"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"slowpath/internal/report/layout"
)

// TestProgram: the program with its screen, driven from outside: a frame, keys, a terminal that becomes larger, and the
// end, after which the terminal is as before.
func TestProgram(t *testing.T) {
	f := play(wholeRecording(t, "slow-command")).last(t)
	m := measured{NewModel(layout.Style{Width: 80, Unicode: true}, 24, Actions{}), &Meter{}}
	p := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(80, 24), teatest.WithProgramOptions(
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithFPS(framesPerSecond)))
	shows := func(text string) {
		t.Helper()
		teatest.WaitFor(t, p.Output(), func(out []byte) bool { return bytes.Contains(out, []byte(text)) },
			teatest.WithDuration(2*time.Minute))
	}
	p.Send(f)
	shows("[1 slow calls]")
	p.Type("2")
	p.Send(tea.WindowSizeMsg{Width: 160, Height: 50}) // all of it is written anew
	shows("[2 callers")
	p.Type("5")
	p.Send(tea.WindowSizeMsg{Width: 240, Height: 80})
	shows("Verdict of the last")
	p.Type("q")
	last := p.FinalModel(t, teatest.WithFinalTimeout(2*time.Minute)).(measured)
	if !last.ending {
		t.Error("it ended without the key")
	}
	fits(t, "the last screen", last.Screen(), 240, 80)
	out, err := io.ReadAll(p.Output())
	if leave := []byte("\x1b[?1049l"); err != nil || !bytes.Contains(out, leave) {
		t.Errorf("the alternate screen is not left (%v): %q", err, out)
	}
}
