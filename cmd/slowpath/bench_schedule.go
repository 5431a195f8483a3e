package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/load"
)

// maxStretches bounds a schedule file.
const maxStretches = 100_000

// stretches is the schedule of an open loop, none for a closed one.
func (f *benchFlags) stretches() ([]load.Stretch, error) {
	given := 0
	for _, s := range []string{f.rate, f.ramp, f.schedule} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, usagef("--rate, --ramp and --schedule each give the schedule: choose one")
	case f.rate != "":
		rate, err := parseLoadRate(f.rate)
		if err != nil {
			return nil, usagef("--rate %q: %w", f.rate, err)
		}
		return []load.Stretch{{Lasts: f.lasts(), From: rate, To: rate}}, nil
	case f.ramp != "":
		return f.parseRamp()
	case f.schedule != "":
		return f.readSchedule()
	}
	if f.load.Arrivals != load.Uniform {
		return nil, usagef("--arrivals is for an open loop: add --rate")
	}
	return nil, nil
}

// mostLoadPerSecond bounds the rate of a load: ten times what a server of one thread has been seen to take.
const mostLoadPerSecond = 2e7

func parseLoadRate(s string) (float64, error) { return parseRateUpTo(s, mostLoadPerSecond) }

func (f *benchFlags) lasts() time.Duration {
	if f.load.Duration == 0 {
		return endless
	}
	return f.load.Duration
}

func (f *benchFlags) parseRamp() ([]load.Stretch, error) {
	if f.load.Duration == 0 {
		return nil, usagef("--ramp needs --for: how long it takes from one rate to the other")
	}
	from, to, ok := strings.Cut(f.ramp, "..")
	if !ok {
		return nil, usagef("--ramp %q: give FROM..TO such as 1000/s..50000/s", f.ramp)
	}
	s := load.Stretch{Lasts: f.load.Duration}
	var err error
	if s.From, err = parseLoadRate(from); err == nil {
		s.To, err = parseLoadRate(to)
	}
	if err != nil {
		return nil, usagef("--ramp %q: %w", f.ramp, err)
	}
	return []load.Stretch{s}, nil
}

// readSchedule reads the file of --schedule. The load is as long as it says, unless --for ends it earlier.
func (f *benchFlags) readSchedule() ([]load.Stretch, error) {
	file, err := os.Open(f.schedule)
	if err != nil {
		return nil, usagef("--schedule: %w", err)
	}
	defer file.Close()
	ss, err := parseSchedule(file)
	if err != nil {
		return nil, usagef("--schedule %s: %w", f.schedule, err)
	}
	var lasts time.Duration
	for _, s := range ss {
		lasts += s.Lasts
	}
	if f.load.Duration == 0 || lasts < f.load.Duration {
		f.load.Duration = lasts
	}
	return ss, nil
}

// parseSchedule reads lines of two numbers, how many seconds and how many calls per second; # begins a comment.
func parseSchedule(r io.Reader) ([]load.Stretch, error) {
	var ss []load.Stretch
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
		return nil, errors.New("it has no line; give lines of two numbers: seconds, calls per second")
	}
	return ss, nil
}

func parseStretch(fields []string) (s load.Stretch, err error) {
	if len(fields) != 2 {
		return s, errors.New("give two numbers: seconds, calls per second")
	}
	seconds, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(seconds > 0) || seconds > endless.Seconds() {
		return s, fmt.Errorf("%.40q: give a number of seconds above 0", fields[0])
	}
	rate, err := parseLoadRate(fields[1])
	if err != nil {
		return s, fmt.Errorf("%.40q: %w", fields[1], err)
	}
	return load.Stretch{Lasts: time.Duration(seconds * 1e9), From: rate, To: rate}, nil
}
