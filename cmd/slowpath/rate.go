package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// parseRate reads "10/s", "600/m" or "10" (per second) and gives calls per second.
func parseRate(s string) (float64, error) {
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
	if err != nil || !(n > 0) || n > 1e6 {
		return 0, errors.New("give a rate such as 10/s, above 0 and at most 1000000/s")
	}
	return n / per.Seconds(), nil
}
