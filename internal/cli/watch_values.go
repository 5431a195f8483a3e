package cli

import "time"

// SlowAuto is --slow where nobody says from which duration on a call is slow.
const SlowAuto = "auto"

// ParseSlow reads --slow; auto is 0.
func ParseSlow(s string) (time.Duration, error) {
	if s == SlowAuto {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > MostTime {
		return 0, Usagef("--slow %q: give a duration such as 10ms, or auto", s)
	}
	return d, nil
}

// CheckEnd checks --end; empty: both ends.
func CheckEnd(end string) error {
	if end != "" && end != "client" && end != "server" {
		return Usagef("--end %q: give client or server, or leave it out for both", end)
	}
	return nil
}

// TapBudget reads --tap-budget, percent of a core, as a part of it; 0: no limit.
func TapBudget(percent float64) (float64, error) {
	if !(percent >= 0 && percent <= 100) { // not a number, too
		return 0, Usagef("--tap-budget %v: give percent of a core from 0 (no limit) to 100", percent)
	}
	return percent / 100, nil
}
