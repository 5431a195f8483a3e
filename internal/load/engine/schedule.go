package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a schedule.
const (
	// MaxPerSecond is ten times what a server with one thread was seen to reach.
	MaxPerSecond = 2e7
	maxStretch   = 365 * 24 * time.Hour
	maxStretches = 100_000
)

// ParseSchedule reads lines of two numbers, seconds and calls per second, 0 for a pause; # begins a comment.
func ParseSchedule(r io.Reader) ([]Stretch, error) {
	var ss []Stretch
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		s, err := parseStretch(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if ss = append(ss, s); len(ss) > maxStretches {
			return nil, fmt.Errorf("more than %d lines", maxStretches)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(ss) == 0 {
		return nil, errors.New("it has no lines; give lines of two numbers: seconds, calls per second")
	}
	if !slices.ContainsFunc(ss, func(s Stretch) bool { return s.From > 0 }) {
		return nil, errors.New("it has no calls: all rates are 0")
	}
	return ss, nil
}

func parseStretch(fields []string) (s Stretch, err error) {
	if len(fields) != 2 {
		return s, errors.New("give two numbers: seconds, calls per second")
	}
	seconds, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(seconds > 0) || seconds > maxStretch.Seconds() {
		return s, fmt.Errorf("%.40q: give a number of seconds above 0", fields[0])
	}
	rate, err := strconv.ParseFloat(fields[1], 64)
	if err != nil || !(rate >= 0) || rate > MaxPerSecond {
		return s, fmt.Errorf("%.40q: give calls per second, 0 to %.0f", fields[1], float64(MaxPerSecond))
	}
	return Stretch{Lasts: time.Duration(seconds * 1e9), From: rate, To: rate}, nil
}
