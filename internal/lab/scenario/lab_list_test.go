package scenario

import (
	"strings"
	"testing"

	"slowpath/internal/report/layout"
)

func TestListFits(t *testing.T) {
	var b strings.Builder
	if err := WriteList(&b, 80); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if layout.Width(line) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
}
