package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Days is a flag for long durations, as "30d" or "12h".
type Days time.Duration

func (d *Days) String() string {
	const day = 24 * time.Hour
	if t := time.Duration(*d); t == 0 || t%day != 0 {
		return t.String()
	}
	return strconv.FormatInt(int64(time.Duration(*d)/day), 10) + "d"
}

// Set implements pflag.Value.
func (d *Days) Set(text string) error {
	number, isDays := strings.CutSuffix(text, "d")
	if isDays {
		n, err := strconv.ParseFloat(number, 64)
		if t := n * 24 * float64(time.Hour); err == nil && t > 0 && t <= float64(MostTime) {
			*d = Days(t)
			return nil
		}
	} else if t, err := time.ParseDuration(text); err == nil && t > 0 && t <= MostTime {
		*d = Days(t)
		return nil
	}
	return errors.New("give a time such as 30d or 12h")
}

// Type implements pflag.Value.
func (*Days) Type() string { return "time" }
