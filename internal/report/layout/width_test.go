package layout

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "GET": 3, "größe": 5, "12 µs → █·…": 11,
		"接続": 4, "ﾊﾝｶｸ": 4, "한국": 4, "각": 2, // Hangul, composed and not
		"e\u0301": 1, "a\u0308\u0323": 1, "ก้": 1,
		"🚀": 2, "👍🏽": 2, "🇩🇪": 2, "👩\u200d🚀": 2,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
}

func TestPad(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Pad("接続", 6), "接続  "},
		{PadLeft("接続", 6), "  接続"},
		{Pad("e\u0301", 3), "e\u0301  "},
		{Pad("too long", 3), "too long"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	unicode, ascii := New(Style{Unicode: true}), New(Style{})
	for _, c := range []struct {
		page  *Page
		text  string
		width int
		want  string
	}{
		{unicode, "redis-server", 12, "redis-server"},
		{unicode, "redis-server", 6, "redis…"},
		{ascii, "redis-server", 6, "red..."},
		{ascii, "redis-server", 3, "red"},
		{unicode, "redis-server", 0, ""},
		{unicode, "/kubepods.slice/redis", 7, "…/redis"},
		{unicode, "接続プール", 6, "接続…"}, // half a character is none
		{unicode, "/接続/プール", 6, "…ール"},
		{unicode, "cafe\u0301 noir", 5, "cafe\u0301…"},
		{unicode, "👍🏽👍🏽👍🏽", 5, "👍🏽👍🏽…"},
	} {
		if got := c.page.Shorten(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestShortenLive: the dots of a live line, where there are no characters beyond ASCII.
func TestShortenLive(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"short", 5, "short"}, {"longer", 5, "lo..."}, {"ÄÖÜäöü", 5, "ÄÖ..."}, {"long", 2, "lo"}, {"x", 0, ""}} {
		if got := Shorten(c.in, c.width, "..."); got != c.want {
			t.Errorf("%q in %d = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestFill(t *testing.T) {
	got := Fill("one two  three\nfour incomprehensibilities five", 10)
	if want := "one two\nthree four\nincomprehensibilities\nfive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two|three"},
		{"took 12 ms in all", 8, "took|12 ms in|all"}, // a number stays with its unit
		{"接続プール", 6, "接続プ|ール"},
		{"cafe\u0301cafe\u0301", 4, "cafe\u0301|cafe\u0301"},
		{"👩🚀👍🏽", 2, "👩|🚀|👍🏽"},
		{"A🏻", 2, "A|🏻"}, // an accent as wide as a character: together they do not fit
		{"Aःः", 2, "Aः|ः"},
		{"接", 1, "接"}, // not even one character fits
	} {
		if got := strings.Join(Wrap(c.text, c.width), "|"); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestFits: texts that are cut or wrapped fit their width, and wrapping loses no character.
func TestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := New(Style{Unicode: rapid.Bool().Draw(t, "unicode")})
		text, width := p.Text(anyText.Draw(t, "text")), rapid.IntRange(2, 60).Draw(t, "width")
		if short := p.Shorten(text, width); Width(short) > width {
			t.Fatalf("%q takes %d columns of %d", short, Width(short), width)
		}
		lines := Wrap(text, width)
		for _, l := range lines {
			if Width(l) > width {
				t.Fatalf("%q takes %d columns of %d", l, Width(l), width)
			}
		}
		without := strings.NewReplacer(" ", "")
		if got := without.Replace(strings.Join(lines, "")); got != without.Replace(text) {
			t.Fatalf("%q became %q", text, lines)
		}
	})
}
