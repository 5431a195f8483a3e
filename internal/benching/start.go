//go:build linux

package benching

import (
	"strings"
	"time"

	"slowpath/internal/cli"
)

// mostAhead bounds a start barrier: one that is further away is a slip of the pen.
const mostAhead = 24 * time.Hour

// parseStartAt reads a moment of the wall clock, RFC 3339, or one from now: +10s.
func parseStartAt(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	var at time.Time
	if text, relative := strings.CutPrefix(s, "+"); relative {
		d, err := time.ParseDuration(text)
		if err != nil {
			return at, cli.Usagef("--start-at %q: give a moment such as 2026-11-21T18:00:00Z, or a time from now "+
				"such as +10s", s)
		}
		at = now.Add(d)
	} else {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return at, cli.Usagef("--start-at %q: give a moment such as 2026-11-21T18:00:00Z, or a time from now "+
				"such as +10s", s)
		}
	}
	switch ahead := at.Sub(now); {
	case ahead <= 0:
		return at, cli.Usagef("--start-at %s: that was %v ago; it is %s now", s, -ahead.Round(time.Millisecond),
			now.UTC().Format(time.RFC3339))
	case ahead > mostAhead:
		return at, cli.Usagef("--start-at %s: that is %v ahead, more than %v", s, ahead.Round(time.Minute), mostAhead)
	}
	return at.Round(0), nil // by the wall clock, which the machines share
}
