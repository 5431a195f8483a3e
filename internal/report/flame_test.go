package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"slowpath/internal/stacks"
)

func flame(frames ...stacks.Stack) Flame {
	p := &stacks.Profile{Types: []stacks.Type{{Name: "delay", Unit: "nanoseconds"}}, Stacks: frames}
	return Flame{Title: "mutex of <shop>", Unit: "nanoseconds", Root: stacks.Graph(p, 0)}
}

// rects reads a drawing as XML and gives the width of each frame by its tip.
func rects(t *testing.T, svg string) (tips []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	title := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return tips
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			title = e.Name.Local == "title"
		case xml.CharData:
			if title {
				tips = append(tips, string(e))
			}
			title = false
		}
	}
}

func TestFlame(t *testing.T) {
	f := flame(stacks.Stack{Frames: []string{"main.main", "example.com/lib.(*Cache).Get", "sync.(*Mutex).Unlock"}, Values: []int64{750e6}},
		stacks.Stack{Frames: []string{"main.main", "<&\x1b>"}, Values: []int64{250e6}},
		stacks.Stack{Frames: []string{"main.main", "too.Narrow"}, Values: []int64{100}})
	var b strings.Builder
	if err := FlameSVG(&b, f); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(rects(t, b.String()), "\n")
	for _, want := range []string{"mutex of <shop>", "main.main: 1.00 s (100.00 %)", "example.com/lib.(*Cache).Get: 750 ms (75.00 %)", "(25.00 %)"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if strings.Contains(all, "too.Narrow") || !strings.Contains(b.String(), ">lib.(*Cache).Get<") {
		t.Errorf("%s", b.String())
	}
}

func TestFlamePage(t *testing.T) {
	var b strings.Builder
	if err := FlamePage(&b, "night.slowpath", []Flame{flame(), flame(stacks.Stack{Frames: []string{"a"}, Values: []int64{1}})}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Count(page, "role=\"tree\"") != 2 || strings.Contains(page, "http://example") || strings.Contains(page, "<shop>") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("%s", page)
	}
}
