package experiment

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/format"
)

// Knee is the concurrency from which twice as much gives less than Gain more throughput.
type Knee struct {
	Estimate
	Gain float64 `json:"gain"`
	From string  `json:"from"` // FromLaw, FromPoints
}

// Where a knee comes from.
const (
	FromLaw    = "law"    // of the fitted law
	FromPoints = "points" // of the measured points, since the law does not hold
)

// findKnee gives the knee if it lies within what was measured.
func (s *Sweep) findKnee(gain float64, fromLaw Estimate) *Knee {
	points := s.validPoints()
	if len(points) < 2 {
		return nil
	}
	first, last := float64(points[0].Value), float64(points[len(points)-1].Value)
	if s.Law != nil && s.Law.Holds {
		if fromLaw.Value > last {
			return nil
		}
		fromLaw.Value = max(fromLaw.Value, first) // lower values were not measured
		return &Knee{fromLaw, gain, FromLaw}
	}
	knee := math.NaN()
	for _, p := range points {
		twice := 2 * float64(p.Value)
		if twice > last {
			break
		}
		if little := between(points, twice) < (1+gain)*p.RequestsPerSecond; !little {
			knee = math.NaN()
		} else if math.IsNaN(knee) {
			knee = float64(p.Value)
		}
	}
	if math.IsNaN(knee) {
		return nil
	}
	return &Knee{estimate(knee, math.NaN(), math.NaN()), gain, FromPoints}
}

// between interpolates the throughput at n linearly in logarithms, since the values of the axis are ratios.
func between(points []Point, n float64) float64 {
	for i, b := range points[1:] {
		a := points[i]
		if x, y := float64(a.Value), float64(b.Value); n <= y {
			share := math.Log(n/x) / math.Log(y/x)
			return a.RequestsPerSecond * math.Pow(b.RequestsPerSecond/a.RequestsPerSecond, share)
		}
	}
	return points[len(points)-1].RequestsPerSecond
}

// sentence says what the sweep found.
func (s *Sweep) sentence(gain float64) string {
	points := s.validPoints()
	if len(points) == 0 {
		return "The generator limited every load: nothing is known about the server."
	}
	first, last := points[0], points[len(points)-1]
	switch {
	case s.Axis == Rate:
		return rateSentence(points)
	case s.Axis == ValueSize:
		return fmt.Sprintf("From %d to %d bytes, requests per second go from %s to %s, and p99 from %s to %s.",
			first.Value, last.Value,
			format.Rounded(first.RequestsPerSecond), format.Rounded(last.RequestsPerSecond),
			format.Brief(first.Latency.P99Ns),
			format.Brief(last.Latency.P99Ns))
	case s.Knee == nil:
		return fmt.Sprintf("No knee up to %s: twice as many still give %.0f %% more requests per second, or too few "+
			"were tried to tell; %s/s at %d.", s.axisText(float64(last.Value)),
			gain*100, format.Rounded(last.RequestsPerSecond), last.Value)
	}
	return s.kneeSentence(points)
}

func (s *Sweep) kneeSentence(points []Point) string {
	k := s.Knee
	last := points[len(points)-1]
	at := points[0]
	for _, p := range points {
		if float64(p.Value) <= k.Value*(1+1e-9) {
			at = p
		}
	}
	var b strings.Builder
	if l := s.Law; l != nil && l.Noise != nil && *l.Noise > k.Gain {
		fmt.Fprintf(&b, "Roughly, since loads at the same value differ by %.0f %%. ", *l.Noise*100)
	}
	fmt.Fprintf(&b, "From %s%s, twice as many give less than %.0f %% more requests per second; from %d to %d p99 "+
		"goes from %s to %s.",
		s.axisText(k.Value), intervalText(k.Estimate), k.Gain*100, at.Value, last.Value, format.Brief(at.Latency.P99Ns),
		format.Brief(last.Latency.P99Ns))
	if l := s.Law; l != nil && l.Holds && l.Peak != nil && l.Kappa.Low != nil && *l.Kappa.Low > 0 {
		switch {
		case l.Peak.Value <= float64(last.Value):
			fmt.Fprintf(&b, " The peak is at %s%s: more make it slower.", s.axisText(l.Peak.Value),
				intervalText(*l.Peak))
		default:
			fmt.Fprintf(&b, " The law has its peak at %s%s, beyond what was measured.", s.axisText(l.Peak.Value),
				intervalText(*l.Peak))
		}
	}
	return b.String()
}

// rateSentence says up to which rate the server kept up. Random arrivals are as many as asked for only on average.
func rateSentence(points []Point) string {
	const answered = 0.97
	for i, p := range points {
		if p.RequestsPerSecond >= answered*float64(p.Value) {
			continue
		}
		behind := fmt.Sprintf("at %s/s it answered %s/s, p99 %s.", format.Rounded(float64(p.Value)),
			format.Rounded(p.RequestsPerSecond), format.Brief(p.Latency.P99Ns))
		if i == 0 {
			return "The server kept up with none of the rates: " + behind
		}
		kept := points[i-1]
		return fmt.Sprintf("The server kept up to %s/s, p99 %s; %s", format.Rounded(float64(kept.Value)),
			format.Brief(kept.Latency.P99Ns), behind)
	}
	first, last := points[0], points[len(points)-1]
	return fmt.Sprintf("The server kept up with all rates to %s/s; p99 went from %s to %s.",
		format.Rounded(float64(last.Value)), format.Brief(first.Latency.P99Ns),
		format.Brief(last.Latency.P99Ns))
}

// axisText is a value of the axis with its unit.
func (s *Sweep) axisText(v float64) string {
	if s.Axis == Pipeline {
		return fmt.Sprintf("%.0f in flight per connection", v)
	}
	return fmt.Sprintf("%.0f %s", v, s.Axis)
}

// intervalText is a confidence interval, empty where it has no end.
func intervalText(e Estimate) string {
	if e.Low == nil || e.High == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %%: %.0f to %.0f)", *e.Low, *e.High)
}
