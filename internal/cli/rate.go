package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	mostPerSecond = 1e6 // of the calls that doctor and probe make
	// leastPerHour: with a lower rate the time between two calls is longer than anybody waits
	leastPerHour = 0.1
)

// ParseRate reads "10/s", "600/m" or "10" (per second) and gives calls per second.
func ParseRate(s string) (float64, error) { return ParseRateUpTo(s, mostPerSecond) }

// ParseRateUpTo is parseRate with another bound, in calls per second.
func ParseRateUpTo(s string, most float64) (float64, error) {
	number, unit, ok := strings.Cut(s, "/")
	per := time.Second
	if ok {
		switch unit {
		case "s":
		case "m":
			per = time.Minute
		case "h":
			per = time.Hour
		default:
			return 0, errors.New("the unit is /s, /m or /h")
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if rate := n / per.Seconds(); err == nil && rate >= leastPerHour/3600 && rate <= most {
		return rate, nil
	}
	return 0, fmt.Errorf("give a rate such as 10/s, from %v/h to %.0f/s", leastPerHour, most)
}
