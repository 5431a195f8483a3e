package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mostPerSecond bounds the rates of calls that doctor and probe make.
const mostPerSecond = 1e6

// parseRate reads "10/s", "600/m" or "10" (per second) and gives calls per second.
func parseRate(s string) (float64, error) { return parseRateUpTo(s, mostPerSecond) }

// parseRateUpTo is parseRate with another bound, in calls per second.
func parseRateUpTo(s string, most float64) (float64, error) {
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
	if rate := n / per.Seconds(); err == nil && rate > 0 && rate <= most {
		return rate, nil
	}
	return 0, fmt.Errorf("give a rate such as 10/s, above 0 and at most %.0f/s", most)
}
