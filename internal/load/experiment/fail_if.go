package experiment

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"slowpath/internal/format"
)

// FailIf is a bound that fails a load which passes it.
type FailIf struct {
	Text  string // as it was given, such as p99>1ms
	limit Limit  // what a load holds that does not pass the bound
}

// Check is what loads show of a bound.
type Check struct {
	FailIf  string `json:"fail_if"` // the bound, as it was given
	Outcome string `json:"outcome"` // Holds, Fails, Untested: it cannot be told
	Why     string `json:"why,omitempty"`
}

var errFailIf = errors.New("give bounds such as p99>1ms, max>20ms or errors>0.1%, with commas between them")

// ParseFailIf reads bounds such as "p99>1ms,errors>0.1%", joined by commas, with the metrics of ParseLimit.
func ParseFailIf(s string) (out []FailIf, err error) {
	for text := range strings.SplitSeq(s, ",") {
		text = strings.TrimSpace(text)
		name, value, ok := strings.Cut(text, ">")
		if !ok {
			return nil, fmt.Errorf("%.60q: %w", text, errFailIf)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		b := Bound{Metric: ErrorsMetric, Share: math.SmallestNonzeroFloat64} // any error
		if name != ErrorsMetric || value != "0" && value != "0%" {
			if b, err = parseBound(name + "<" + value); err != nil {
				return nil, fmt.Errorf("%.60q: %w", text, err)
			}
			b.Below, b.Share = b.Below+1, math.Nextafter(b.Share, 1) // the value itself is no failure
		}
		out = append(out, FailIf{text, Limit{b}})
	}
	return out, nil
}

// Check tells whether loads pass the bound: what most of them show. A load that was ended early holds nothing.
func (f FailIf) Check(interrupted bool, runs ...Run) Check {
	counts, why := map[string]int{}, map[string]string{}
	for _, r := range runs {
		outcome, text := f.judge(r)
		if interrupted && outcome == Holds {
			outcome, text = Untested, "the load was ended early"
		}
		counts[outcome]++
		why[outcome] = text // of the last one
	}
	of := ""
	if len(runs) > 1 {
		of = fmt.Sprintf(" in %d of %d loads", counts[Fails], len(runs))
	}
	switch {
	case 2*counts[Fails] > len(runs):
		return Check{f.Text, Fails, why[Fails] + of}
	case 2*counts[Holds] > len(runs):
		return Check{f.Text, Holds, ""}
	case why[Untested] == "": // as many loads hold as fail
		return Check{f.Text, Untested, why[Fails] + of}
	}
	return Check{f.Text, Untested, why[Untested]}
}

// judge is Limit.judge, but that few calls show nothing of a quantile.
func (f FailIf) judge(r Run) (outcome, why string) {
	outcome, why = f.limit.judge(r)
	b := f.limit[0]
	if b.Metric == ErrorsMetric {
		return outcome, why
	}
	if needed := f.limit.callsNeeded(); r.Requests < needed {
		return Untested, fmt.Sprintf("%s had a reply, and %s takes %s", format.Count(int(r.Requests), "call"), b.Metric,
			format.Thousands(needed))
	}
	return outcome, why
}

// Outcome is the worst one of checks: Fails where one fails, else Untested where one cannot be told.
func Outcome(checks []Check) string {
	outcome := Holds
	for _, c := range checks {
		if c.Outcome == Fails || outcome == Holds {
			outcome = c.Outcome
		}
	}
	return outcome
}
