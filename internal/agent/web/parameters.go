package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// badRequest is an error of who asks.
type badRequest struct{ said string }

func (e badRequest) Error() string { return e.said }

func bad(format string, args ...any) error { return badRequest{fmt.Sprintf(format, args...)} }

// Bounds of parameters.
const (
	maxSpan   = 31 * 24 * time.Hour // of an overview
	maxQuery  = 200                 // bytes of a text to search for
	maxMark   = 200                 // bytes of a mark
	maxReason = 200                 // bytes of a reason
)

// incidentID is how incidents are called; nothing else is passed on, and no other name can be a path.
var incidentID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9]{1,6}$`)

// timeParameter is a time in RFC 3339 or Unix seconds; zero where it is not given.
func timeParameter(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	return parseTime(name, text)
}

func parseTime(name, text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
		return t.UTC(), nil
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil && s >= 0 && s < 7e9 {
		return time.Unix(s, 0).UTC(), nil
	}
	return time.Time{}, bad("%s=%s is no time: give RFC 3339, such as 2026-11-24T03:12:00Z, or Unix seconds", name,
		quoted(text))
}

// intParameter is a number of [low, high]; otherwise where it is not given.
func intParameter(r *http.Request, name string, low, high, otherwise int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, bad("%s=%s is not a number from %d to %d", name, quoted(text), low, high)
	}
	return n, nil
}

// durationParameter is a duration such as 15m, of [low, high]; otherwise where it is not given. Days are 24 h: 7d.
func durationParameter(r *http.Request, name string, low, high, otherwise time.Duration) (time.Duration, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); err != nil && ok {
		if n, parsed := strconv.Atoi(days); parsed == nil && n >= 0 && n < 1000 {
			d, err = time.Duration(n)*24*time.Hour, nil
		}
	}
	if err != nil || d < low || d > high {
		return 0, bad("%s=%s is not a duration from %v to %v, such as 15m, 6h or 7d", name, quoted(text), low, high)
	}
	return d, nil
}

// textParameter is a text of at most limit bytes.
func textParameter(r *http.Request, name string, limit int) (string, error) {
	text := r.URL.Query().Get(name)
	if len(text) > limit {
		return "", bad("%s is longer than %d bytes", name, limit)
	}
	return text, nil
}
