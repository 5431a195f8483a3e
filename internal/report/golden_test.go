package report

import (
	"bytes"
	"fmt"
	"testing"

	"slowpath/internal/house/golden"

	"slowpath/internal/report/layout"
)

func TestTextGolden(t *testing.T) {
	for name, d := range samples {
		for _, s := range []layout.Style{
			{Width: 80},
			{Width: 80, Unicode: true},
			{Width: 160},
			{Width: 160, Unicode: true},
		} {
			charset := "ascii"
			if s.Unicode {
				charset = "unicode"
			}
			var buf bytes.Buffer
			if err := Text(&buf, d, s); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, fmt.Sprintf("%s.%d.%s.golden", name, s.Width, charset), buf.Bytes())
		}
	}
}

func TestTextColorGolden(t *testing.T) {
	var buf bytes.Buffer
	if err := Text(&buf, throttled(), layout.Style{Width: 80, Color: true, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "throttled.80.color.golden", buf.Bytes())
}

// TestNarrowGolden: the narrowest terminal.
func TestNarrowGolden(t *testing.T) {
	var buf bytes.Buffer
	if err := Text(&buf, throttled(), layout.Style{Width: 40, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "throttled.40.unicode.golden", buf.Bytes())
}

func TestJSONGolden(t *testing.T) {
	for name, d := range samples {
		var buf bytes.Buffer
		if err := JSON(&buf, d); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".json.golden", buf.Bytes())
	}
}
