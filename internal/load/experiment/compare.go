package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/stats"
)

// Baseline is earlier loads, with which new ones are compared.
type Baseline struct {
	Name  string // of the file
	Setup Setup
	Runs  []Run
}

// Comparison says what differs from a baseline.
type Comparison struct {
	Baseline    string       `json:"baseline"` // its file
	Version     string       `json:"version"`  // of the program that made it
	Start       time.Time    `json:"start"`    // of its first load
	Repeats     int          `json:"repeats"`  // of its loads
	Differences []Difference `json:"differences"`
	// Verdict is that over all metrics: Faster, Slower, Mixed, NoDifference, TooFew. All metrics together show a
	// difference where there is none in at most a share Alpha of comparisons.
	Verdict  string    `json:"verdict"`
	Alpha    float64   `json:"alpha"`
	Needed   int       `json:"needed_repeats"` // on either side, for a difference to show at all
	Metrics  []Verdict `json:"figures"`
	Sentence string    `json:"sentence"`
}

// Difference is a setting that is not what it was.
type Difference struct {
	Setting string `json:"setting"`
	Old     string `json:"old"` // empty: it was not given
	New     string `json:"new"`
}

// Verdict is what the repeats show of one metric.
type Verdict struct {
	Metric  string   `json:"figure"`
	Old     Estimate `json:"old"`    // medians
	New     Estimate `json:"new"`    //
	Change  Estimate `json:"change"` // 0.04: 4 % more than before
	P       float64  `json:"p"`      // Mann-Whitney U test, of this metric alone
	Verdict string   `json:"verdict"`
	Text    string   `json:"text"` // the verdict in words
}

// Verdicts over all metrics, and of one.
const (
	Faster       = stats.Faster
	Slower       = stats.Slower
	Mixed        = "mixed"
	NoDifference = stats.NoDifference
	TooFew       = stats.TooFew
)

// compare compares repeats with the baseline.
func (b *Baseline) compare(s *Repeats, open bool) *Comparison {
	c := &Comparison{
		Baseline: b.Name, Version: b.Setup.Version, Repeats: len(b.Runs), Start: b.Runs[0].Start,
		Alpha:       stats.Alpha,
		Differences: differences(b.Setup, s.Setup),
	}
	var metrics []stats.Metric
	for _, f := range metricsOf(open) {
		metrics = append(metrics, stats.Metric{
			Name: f.name, HigherIsBetter: f.higher, Old: each(b.Runs, f.of),
			New: each(s.Runs, f.of),
		})
	}
	for _, v := range stats.Compare(metrics) {
		c.Needed = max(c.Needed, v.Needed)
		c.Metrics = append(c.Metrics, Verdict{
			Metric: v.Name, Old: estimate(v.Old.Value, v.Old.Low, v.Old.High),
			New:    estimate(v.New.Value, v.New.Low, v.New.High),
			Change: estimate(zeroNaN(v.Change), v.Low, v.High), P: v.P, Verdict: v.Verdict,
			Text: verdictText(v),
		})
	}
	c.Verdict = c.overall()
	c.Sentence = c.sentence(len(s.Runs))
	return c
}

// Checks are the metrics of a comparison as bounds: one fails where it got slower. Without a comparison there is none.
func (c *Comparison) Checks() (out []Check) {
	if c == nil {
		return nil
	}
	outcomes := map[string]string{Faster: Holds, NoDifference: Holds, Slower: Fails, TooFew: Untested}
	for _, f := range c.Metrics {
		if outcome, ok := outcomes[f.Verdict]; ok {
			out = append(out, Check{strings.TrimSuffix(f.Metric, "_ns") + " slower than before", outcome, f.Text})
		}
	}
	return out
}

func zeroNaN(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func (c *Comparison) overall() string {
	has := map[string]bool{}
	for _, f := range c.Metrics {
		has[f.Verdict] = true
	}
	switch {
	case has[Faster] && has[Slower]:
		return Mixed
	case has[Slower]:
		return Slower
	case has[Faster]:
		return Faster
	case has[TooFew]:
		return TooFew
	}
	return NoDifference
}

func (c *Comparison) sentence(repeats int) string {
	switch c.Verdict {
	case NoDifference:
		return "No difference shown."
	case TooFew:
		return fmt.Sprintf("Too few repeats to compare: %d here and %d in the baseline, and a difference can show "+
			"from %d on either side (--repeat %d).", repeats,
			c.Repeats, c.Needed, c.Needed)
	}
	var parts []string
	rest := false
	for _, f := range c.Metrics {
		switch f.Verdict {
		case Faster, Slower:
			parts = append(parts, strings.ReplaceAll(strings.TrimSuffix(f.Metric, "_ns"), "_", " ")+": "+f.Text)
		default:
			rest = true
		}
	}
	text := strings.Join(parts, "; ")
	if rest {
		text += "; no difference shown in the others"
	}
	return text + "."
}

// differences are those of the target, the settings, and the version of the program.
func differences(old, now Setup) []Difference {
	flat := func(s Setup) map[string]string {
		out := map[string]string{}
		flatten(out, "", generic(s))
		delete(out, "duration_ns") // the settings have it
		return out
	}
	a, b := flat(old), flat(now)
	all := maps.Clone(a)
	maps.Copy(all, b)
	out := []Difference{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			out = append(out, Difference{name, a[name], b[name]})
		}
	}
	return out
}

// generic is a value as JSON has it, so that one from a file and one from this process are alike.
func generic(v any) (out any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		return nil // settings came from JSON or go there: they can be encoded
	}
	return out
}

func flatten(out map[string]string, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			flatten(out, strings.TrimPrefix(name+"."+k, "."), inner)
		}
	case nil:
	case string:
		out[name] = v
	default: // numbers, and lists as a whole
		body, _ := json.Marshal(v) // it came from JSON
		out[name] = string(body)
	}
}

// ErrNotBaseline: a file has no loads to compare with.
var ErrNotBaseline = errors.New("no baseline: give what slowpath bench --json wrote, best with --repeat")

// ParseRepeats reads a document slowpath.repeats/v1.
func ParseRepeats(body []byte) (*Repeats, error) {
	var r Repeats
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotBaseline, err)
	}
	if r.Schema != RepeatsSchema || len(r.Runs) == 0 {
		return nil, fmt.Errorf("%w; its schema is %.40q", ErrNotBaseline, r.Schema)
	}
	return &r, nil
}
