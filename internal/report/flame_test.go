package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"slowpath/internal/source/profile/stacks"
)

func flame(frames ...stacks.Stack) Flame {
	p := &stacks.Profile{Types: []stacks.Type{{Name: "delay", Unit: "nanoseconds"}}, Stacks: frames}
	return Flame{Title: "mutex of <shop>", Unit: "nanoseconds", Root: stacks.Graph(p, 0)}
}

// drawn is the graph of a page with one.
func drawn(t *testing.T, f Flame) string {
	t.Helper()
	var b strings.Builder
	if err := FlamePage(&b, "x", []Flame{f}); err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(b.String(), "</div>\n<svg ")
	svg, _, closed := strings.Cut(rest, "\n</svg>\n")
	if !ok || !closed {
		t.Fatalf("no drawing in %s", b.String())
	}
	return "<svg " + svg + "\n</svg>"
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
	f := flame(stacks.Stack{
		Frames: []string{"main.main", "example.com/lib.(*Cache).Get", "sync.(*Mutex).Unlock"},
		Values: []int64{750e6},
	},
		stacks.Stack{Frames: []string{"main.main", "<&\x1b>"}, Values: []int64{250e6}},
		stacks.Stack{Frames: []string{"main.main", "too.Narrow"}, Values: []int64{100}})
	svg := drawn(t, f)
	all := strings.Join(rects(t, svg), "\n")
	for _, want := range []string{"mutex of <shop>", "main.main: 1.00 s (100.00 %)", "example.com/lib.(*Cache).Get: " +
		"750 ms (75.00 %)", "(25.00 %)"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if strings.Contains(all, "too.Narrow") || !strings.Contains(svg, ">lib.(*Cache).Get<") {
		t.Errorf("%s", svg)
	}
}

func TestFlamePage(t *testing.T) {
	var b strings.Builder
	if err := FlamePage(&b, "night.slowpath", []Flame{flame(), flame(stacks.Stack{
		Frames: []string{"a"},
		Values: []int64{1},
	})}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Count(page, "role=\"tree\"") != 2 || strings.Contains(page, "http://example") ||
		strings.Contains(page, "<shop>") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("%s", page)
	}
}

// TestFlameAgainst: colours and tips tell more from less than in what it is held against.
func TestFlameAgainst(t *testing.T) {
	f := flame(stacks.Stack{Frames: []string{"main", "lua"}, Values: []int64{90e6}},
		stacks.Stack{Frames: []string{"main", "get"}, Values: []int64{10e6}})
	f.Baseline = flame(stacks.Stack{Frames: []string{"main", "get"}, Values: []int64{7}}).Root
	f.BaselineName = "else"
	f.Top = []stacks.Function{{Name: "<lua>", Own: 90e6, All: 95e6}}
	var b strings.Builder
	if err := FlamePage(&b, "x", []Flame{f}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"lua: 90.0 ms (90.00 %); else: 0.00 %", "get: 10.0 ms (10.00 %); else: 100.00 %",
		contrast(0.9), contrast(-0.9), "<td class=\"r\">95.0 %</td><td class=\"name\">&lt;lua&gt;</td>",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if contrast(0.9) == contrast(-0.9) || contrast(0.001) == contrast(0.05) {
		t.Error("colours tell nothing apart")
	}
}

// TestFlamePlaces: frames lie below their callers and beside each other, in shares of the whole.
func TestFlamePlaces(t *testing.T) {
	f := flame(stacks.Stack{Frames: []string{"main", "a"}, Values: []int64{25}}, stacks.Stack{Frames: []string{
		"main",
		"b",
	}, Values: []int64{75}})
	svg := drawn(t, f)
	for _, want := range []string{
		`x="0.00000%" y="18" width="100.00000%" height="18" data-l="1" data-n="main"`,
		`x="0.00000%" y="36" width="25.00000%" height="18" data-l="2" data-n="a"`,
		`x="25.00000%" y="36" width="75.00000%" height="18" data-l="2" data-n="b"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
}

// TestFlameOfHostileNames: whatever a function, a process or a unit calls itself, the page shows it as text.
func TestFlameOfHostileNames(t *testing.T) {
	const name = `"/><script>alert(1)</script></title></style><img onerror=alert(1) src=x>'` + "\x1b]0;x\x07"
	f := flame(stacks.Stack{Frames: []string{"main", name}, Values: []int64{1}})
	f.Title, f.Note, f.Unit, f.BaselineName, f.Baseline = name, name, name, name, f.Root
	f.Top = []stacks.Function{{Name: name, Own: 1, All: 1}}
	var b strings.Builder
	if err := FlamePage(&b, name, []Flame{f, f}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for what, most := range map[string]int{
		"<script": 1, "<style": 1, "</style": 1, "<img": 0, "\x1b": 0, "\x07": 0, "ZgotmplZ": 0,
		`data-n=""`: 0, "alert(1)</script>": 0,
	} {
		if n := strings.Count(page, what); n != most {
			t.Errorf("%d of %q, not %d, in %s", n, what, most, page)
		}
	}
	if tips := strings.Join(rects(t, drawn(t, f)), "\n"); !strings.Contains(tips, "<script>alert(1)</script>") {
		t.Errorf("the name is not shown as it is: %s", tips)
	}
}
