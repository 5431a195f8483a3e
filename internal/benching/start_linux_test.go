package benching

import (
	"strings"
	"testing"
	"time"
)

func TestParseStartAt(t *testing.T) {
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want time.Time
		err  string
	}{
		{"", time.Time{}, ""},
		{"+10s", now.Add(10 * time.Second), ""},
		{"2026-11-21T19:00:30+01:00", now.Add(30 * time.Second), ""},
		{"2026-11-21T18:00:00.5Z", now.Add(500 * time.Millisecond), ""},
		{"2026-11-21T17:59:59Z", now, "1s ago"},
		{"+0s", now, "ago"},
		{"+48h", now, "ahead"},
		{"18:00", now, "give a moment"},
		{"+soon", now, "give a moment"},
		{"-5s", now, "give a moment"},
	} {
		got, err := parseStartAt(c.text, now)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v, want %q", c.text, err, c.err)
		case c.err == "" && (err != nil || !got.Equal(c.want)):
			t.Errorf("%q: got %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}
