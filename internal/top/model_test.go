package top

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"slowpath/internal/report/layout"
)

// updating reports whether the golden files are to be written: -update is a flag of teatest.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if updating() {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", name, got)
	}
}

// showing is a model that shows a frame on a terminal.
func showing(f Frame, style layout.Style, width, height int) Model {
	style.Width = width
	m, _ := NewModel(style, height, Actions{}).Update(f)
	return m.(Model)
}

// fits fails where a screen has too many lines, or one that is too long.
func fits(t *testing.T, what, screen string, width, height int) {
	t.Helper()
	lines := strings.Split(screen, "\n")
	if len(lines) > height {
		t.Errorf("%s: %d lines of %d", what, len(lines), height)
	}
	for i, l := range lines {
		if n := lipgloss.Width(l); n > width {
			t.Errorf("%s: line %d has %d columns of %d: %q", what, i+1, n, width, l)
		}
	}
}

var sizes = [][2]int{{40, 20}, {80, 24}, {120, 40}, {160, 50}, {240, 80}}

// TestScreensGolden: how scenarios look at each size.
func TestScreensGolden(t *testing.T) {
	for _, scenario := range []string{"slow-command", "server-cfs-throttled", "healthy-mixed"} {
		f := play(wholeRecording(t, scenario)).last(t)
		for _, size := range sizes {
			if size[0] != 80 && scenario != "slow-command" {
				continue
			}
			name := fmt.Sprintf("%s.%dx%d", scenario, size[0], size[1])
			screen := showing(f, layout.Style{Unicode: true}, size[0], size[1]).Screen()
			fits(t, name, screen, size[0], size[1])
			golden(t, name+".golden", []byte(screen+"\n"))
		}
		if page, err := os.ReadFile("../../docs/tasks.md"); err != nil || scenario == "slow-command" &&
			!bytes.Contains(page, []byte(showing(f, layout.Style{Unicode: true}, 80, 24).Screen())) {
			t.Errorf("docs/tasks.md has not the screen of %s.80x24.golden: %v", scenario, err)
		}
		ascii := showing(f, layout.Style{}, 80, 24).Screen()
		fits(t, scenario, ascii, 80, 24)
		golden(t, scenario+".80x24.ascii.golden", []byte(ascii+"\n"))
		colour := showing(f, layout.Style{Unicode: true, Color: true}, 80, 24).Screen()
		golden(t, scenario+".80x24.color.golden", []byte(colour+"\n"))
	}
}
