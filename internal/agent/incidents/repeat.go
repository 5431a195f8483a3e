package incidents

import (
	"fmt"
	"slices"
	"time"

	"slowpath/internal/format"
)

// Repeat says that calls of the same nodes were slow for the same cause before.
type Repeat struct {
	Nth   int       `json:"nth"`   // 2: it is the second time
	Since time.Time `json:"since"` // the begin of the first one that is kept, UTC
	// EverySeconds is between two begins, where all are about as far apart; 0: they are not, or are too few.
	EverySeconds float64 `json:"every_seconds,omitempty"`
}

// leastRegular is how many incidents say that there is a rhythm. regular is by how much of their mean their distances
// may differ from it.
const (
	leastRegular = 4
	regular      = 0.1
)

// repeatOf looks for incidents before one, which has its cause and nodes. nil: it is the first. s.mu is held.
func (s *Store) repeatOf(in Incident) *Repeat {
	if in.Cause == "" {
		return nil
	}
	var begins []time.Time
	for _, k := range s.all {
		if k.Cause == in.Cause && k.Start.Before(in.Start) && k.ID != in.ID && slices.ContainsFunc(k.Nodes,
			func(n string) bool { return slices.Contains(in.Nodes, n) }) {
			begins = append(begins, k.Start)
		}
	}
	if len(begins) == 0 {
		return nil
	}
	slices.SortFunc(begins, time.Time.Compare)
	begins = append(begins, in.Start)
	return &Repeat{Nth: len(begins), Since: begins[0], EverySeconds: rhythm(begins)}
}

// rhythm is the seconds between times, which are in order; 0 where there is none.
func rhythm(times []time.Time) float64 {
	if len(times) < leastRegular {
		return 0
	}
	var apart []float64
	for i, t := range times[1:] {
		apart = append(apart, t.Sub(times[i]).Seconds())
	}
	mean := times[len(times)-1].Sub(times[0]).Seconds() / float64(len(apart))
	if slices.Min(apart) < (1-regular)*mean || slices.Max(apart) > (1+regular)*mean {
		return 0
	}
	return mean
}

// String is a sentence, such as "The 5th time since Nov 27 14:05 UTC, about every 1h."
func (r *Repeat) String() string {
	text := fmt.Sprintf("The %s time since %s", ordinal(r.Nth), r.Since.UTC().Format("Jan 2 15:04 UTC"))
	if every := time.Duration(r.EverySeconds * 1e9); every > 0 {
		to := time.Second
		if every >= 10*time.Minute {
			to = time.Minute
		}
		text += ", about every " + format.Interval(every.Round(to))
	}
	return text + "."
}

func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}
