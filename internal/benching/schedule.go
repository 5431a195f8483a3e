//go:build linux

package benching

import (
	"bytes"
	"strings"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/load/engine"
)

// mostScheduleBytes is more than the lines that a schedule may have take.
const mostScheduleBytes = 16_000_000

// stretches is the schedule of an open loop, none for a closed one.
func (f *Options) stretches() ([]engine.Stretch, error) {
	given := 0
	for _, s := range []string{f.Rate, f.Ramp, f.Schedule} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, cli.Usagef("--rate, --ramp and --schedule each give the schedule: choose one")
	case f.Rate != "":
		rate, err := parseLoadRate(f.Rate)
		if err != nil {
			return nil, cli.Usagef("--rate %q: %w", f.Rate, err)
		}
		return []engine.Stretch{{Lasts: f.lasts(), From: rate, To: rate}}, nil
	case f.Ramp != "":
		return f.parseRamp()
	case f.Schedule != "":
		return f.readSchedule()
	}
	if f.Load.Arrivals != engine.Uniform {
		return nil, cli.Usagef("--arrivals is for an open loop: add --rate")
	}
	return nil, nil
}

func parseLoadRate(s string) (float64, error) { return cli.ParseRateUpTo(s, engine.MaxPerSecond) }

func (f *Options) lasts() time.Duration {
	if f.Load.Duration == 0 {
		return endless
	}
	return f.Load.Duration
}

func (f *Options) parseRamp() ([]engine.Stretch, error) {
	if f.Load.Duration == 0 {
		return nil, cli.Usagef("--ramp needs --for: how long it takes from one rate to the other")
	}
	from, to, ok := strings.Cut(f.Ramp, "..")
	if !ok {
		return nil, cli.Usagef("--ramp %q: give FROM..TO such as 1000/s..50000/s", f.Ramp)
	}
	s := engine.Stretch{Lasts: f.Load.Duration}
	var err error
	if s.From, err = parseLoadRate(from); err == nil {
		s.To, err = parseLoadRate(to)
	}
	if err != nil {
		return nil, cli.Usagef("--ramp %q: %w", f.Ramp, err)
	}
	return []engine.Stretch{s}, nil
}

// readSchedule reads the file of --schedule. The load is as long as it says, unless --for ends it earlier.
func (f *Options) readSchedule() ([]engine.Stretch, error) {
	body, err := cli.ReadNamed(f.Schedule, mostScheduleBytes)
	if err != nil {
		return nil, cli.Usagef("--schedule: %w", err)
	}
	ss, err := engine.ParseSchedule(bytes.NewReader(body))
	if err != nil {
		return nil, cli.Usagef("--schedule %s: %w", f.Schedule, err)
	}
	var lasts time.Duration
	for _, s := range ss {
		if lasts += s.Lasts; lasts > cli.MostTime {
			return nil, cli.Usagef("--schedule %s: its lines take more than %v in all (ten years)", f.Schedule,
				cli.MostTime)
		}
	}
	if f.Load.Duration == 0 || lasts < f.Load.Duration {
		f.Load.Duration = lasts
	}
	return ss, nil
}
