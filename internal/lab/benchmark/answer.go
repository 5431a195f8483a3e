package benchmark

import (
	"cmp"
	"fmt"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/random"
	"slowpath/internal/recording"
)

// Tool answers for an incident.
type Tool struct {
	Name   string
	Answer func(s Set, in Incident) (Answer, error)
}

// Tools are those that the benchmark brings along: slowpath with the evidence of each tier, and fixed rules for what
// the server says of itself.
func Tools(version string) (all []Tool) {
	for _, tier := range recording.Tiers {
		all = append(all, Tool{"slowpath " + tier.Name, func(s Set, in Incident) (Answer, error) {
			rec, err := s.recording(in.ID)
			if err != nil {
				return Answer{}, err
			}
			return ofVerdict(verdict.Diagnose(rec.Without(tier.Without...), version)), nil
		}})
	}
	return append(all, Tool{"LATENCY DOCTOR", byText(LatencyDoctor)}, Tool{"SLOWLOG", byText(Slowlog)})
}

func ofVerdict(d verdict.Diagnosis) Answer {
	a := Answer{Healthy: d.Verdict == verdict.Healthy, Causes: []AnswerCause{}}
	for _, f := range d.Findings {
		a.Causes = append(a.Causes, AnswerCause{
			Cause: f.Cause, Share: f.ExcessShare, Confidence: f.Confidence, Because: f.Because, Culprit: culpritOf(f),
			Fix: firstOf(f.Fix),
		})
	}
	return a
}

func culpritOf(f cause.Finding) string {
	if len(f.Culprits) == 0 {
		return ""
	}
	return cmp.Or(f.Culprits[0].ClientName, f.Culprits[0].Text)
}

func firstOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// byText answers by what the native commands printed after the incident.
func byText(answer func(text string) Answer) func(Set, Incident) (Answer, error) {
	return func(s Set, in Incident) (Answer, error) {
		text, err := s.read(in.ID, string(random.After)+".txt")
		if err != nil {
			return Answer{}, fmt.Errorf("incident %s: %w", in.ID, err)
		}
		return answer(string(text)), nil
	}
}
