package bench

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
)

// notes say in what the sum differs from one load.
func (m *merger) notes() []string {
	out := []string{fmt.Sprintf("Added up from %d results. Percentiles are of all their calls; those of a second in "+
		"the series are the highest of the parts'.", len(m.parts))}
	out = append(out, m.commonNotes()...)
	out = append(out, m.windows()...)
	out = append(out, m.differences()...)
	var names []string
	for _, p := range m.out.Parts {
		if p.GeneratorLimited {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		out = append(out, fmt.Sprintf("Limited by the generator or its host: %s. The sum is less than the server can "+
			"do.", strings.Join(names, ", ")))
	}
	return append(out, m.sameSeeds()...)
}

// commonNotes are the notes that all parts have.
func (m *merger) commonNotes() (out []string) {
	for _, note := range m.parts[0].Result.Notes {
		if !slices.ContainsFunc(m.parts, func(p Named) bool { return !slices.Contains(p.Result.Notes, note) }) {
			out = append(out, note)
		}
	}
	return out
}

// Limits within which the parts count as made at the same time.
const (
	commonShare = 0.95 // of the longest part
	startsApart = 100 * time.Millisecond
)

// windows says how far the parts were made at the same time.
func (m *merger) windows() []string {
	from, to := m.common()
	if !to.After(from) {
		var spans []string
		for _, p := range m.parts {
			spans = append(spans, fmt.Sprintf("%s %s to %s", p.Name, clockTime(p.Result.Start),
				clockTime(endOf(p.Result))))
		}
		return []string{"The parts have no time in common, so there is no rate of all together: " + strings.Join(spans,
			", ") + ". Start them with the same --start-at."}
	}
	var out []string
	longest := 0.0
	for _, p := range m.parts {
		longest = max(longest, p.Result.Seconds)
	}
	if common := to.Sub(from).Seconds(); common < commonShare*longest {
		out = append(out, fmt.Sprintf("The parts have %s s of %s s in common, and the rate is that of this time. "+
			"Start "+
			"them with the same --start-at and --for.", format.Rounded(common), format.Rounded(longest)))
	} else if apart := m.parts[len(m.parts)-1].Result.Start.Sub(m.parts[0].Result.Start); apart > startsApart {
		out = append(out, fmt.Sprintf("The parts began within %s of each other. --start-at starts them together.",
			format.Brief(apart)))
	}
	return out
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// differences are settings and targets that are not the same in all parts.
func (m *merger) differences() []string {
	var out []string
	first := m.parts[0]
	for _, s := range []struct {
		name string
		of   func(*Result) any
	}{
		{"target", func(r *Result) any { return r.Target.Address }},
		{"server", func(r *Result) any { return r.Target.Server }},
		{"loop", func(r *Result) any { return r.Settings.Loop }},
		{"pipeline", func(r *Result) any { return r.Settings.Pipeline }},
		{"pipeline mode", func(r *Result) any { return r.Settings.PipelineMode }},
		{"arrivals", func(r *Result) any { return r.Settings.Arrivals }},
		{"busy polling", func(r *Result) any { return r.Settings.BusyPoll }},
		{"protocol", func(r *Result) any { return r.Settings.Protocol }},
		{"TLS", func(r *Result) any { return r.Settings.TLS }},
		{"workload", func(r *Result) any { return r.Settings.Workload }},
		{"replay speed", replaySpeed},
		{"version of slowpath", func(r *Result) any { return r.Version }},
	} {
		for _, p := range m.parts[1:] {
			if a, b := s.of(first.Result), s.of(p.Result); !reflect.DeepEqual(a, b) {
				out = append(out, fmt.Sprintf("The parts differ: %s is %v in %s and %v in %s.", s.name, a, first.Name,
					b, p.Name))
				break
			}
		}
	}
	return out
}

// sameSeeds: parts with the same seed draw the same keys in the same order, and the same Poisson arrivals.
func (m *merger) sameSeeds() []string {
	seeds := map[uint64]string{}
	for _, p := range m.parts {
		seed := p.Result.Settings.Seed
		if other, found := seeds[seed]; found {
			return []string{fmt.Sprintf("%s and %s drew the same keys and arrivals (--seed %d): give each its own.",
				other, p.Name, seed)}
		}
		seeds[seed] = p.Name
	}
	return nil
}
