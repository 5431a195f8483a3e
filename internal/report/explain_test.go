package report

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/report/layout"
)

// TestCausesFit: at widths from 40 to 240 no line of a cause, or of the list, is longer, but for links and commands.
// The list has all causes.
func TestCausesFit(t *testing.T) {
	var all []CauseText
	for _, c := range cause.Catalogue() {
		all = append(all, TextOf(c))
	}
	for width := 40; width <= 240; width += 10 {
		s := layout.Style{Width: width, Unicode: true}
		var list bytes.Buffer
		if err := CauseList(&list, all, s); err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		for _, c := range all {
			if !strings.Contains(list.String(), "\n  "+c.ID) {
				t.Errorf("width %d: the list lacks %s of layer %s", width, c.ID, c.Layer)
			}
			if err := Cause(&whole, c, s); err != nil {
				t.Fatal(err)
			}
		}
		for line := range strings.SplitSeq(list.String()+whole.String(), "\n") {
			piece := strings.Contains(line, "https://") || strings.HasPrefix(line, "  slowpath lab run ")
			if layout.Width(line) > width && !piece {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
}
