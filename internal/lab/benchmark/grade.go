package benchmark

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/random"
)

// GradeSchema names the format of a Report.
const GradeSchema = "slowpath.benchmark/v1"

// Report is how right tools are.
type Report struct {
	Schema    string  `json:"schema"`
	Incidents int     `json:"incidents"`
	Tools     []Grade `json:"tools"`
}

// Grade is how right one tool is.
type Grade struct {
	Tool string `json:"tool"`
	// Answered is how many of the incidents it answered; the others count as if it could not tell.
	Answered int         `json:"answered"`
	Figures  random.Tier `json:"figures"`
}

// Grade compares answers with the truth of a set.
func (s Set) Grade(answers []Answer) (Report, error) {
	incidents, err := s.Incidents()
	if err != nil {
		return Report{}, err
	}
	r := Report{Schema: GradeSchema, Incidents: len(incidents)}
	var runs []random.Run
	at := map[string]int{}
	for _, in := range incidents {
		run, err := s.Truth(in.ID)
		if err != nil {
			return Report{}, err
		}
		run.Tiers = nil
		at[in.ID], runs = len(runs), append(runs, run)
	}
	answered := map[string]int{}
	for _, a := range answers {
		i, known := at[a.Incident]
		if !known {
			return Report{}, fmt.Errorf("%s answers incident %q, which %s does not have", a.Tool, a.Incident, s.Dir)
		}
		if _, twice := runs[i].Tiers[a.Tool]; twice {
			return Report{}, fmt.Errorf("%s answers incident %q twice", a.Tool, a.Incident)
		}
		runs[i].Grade(a.Tool, a.verdict(), a.findings())
		answered[a.Tool]++
	}
	for tool, n := range answered {
		for i := range runs {
			if _, has := runs[i].Tiers[tool]; !has {
				runs[i].Grade(tool, verdict.Inconclusive, nil)
			}
		}
		r.Tools = append(r.Tools, Grade{tool, n, random.Figures(runs, tool)})
	}
	slices.SortFunc(r.Tools, func(a, b Grade) int {
		return cmp.Or(cmp.Compare(b.Figures.FirstNamed.Count, a.Figures.FirstNamed.Count), cmp.Compare(a.Tool, b.Tool))
	})
	return r, nil
}

func (a Answer) verdict() string {
	switch {
	case len(a.Causes) > 0:
		return verdict.Findings
	case a.Healthy:
		return verdict.Healthy
	}
	return verdict.Inconclusive
}

func (a Answer) findings() (out []random.Finding) {
	for _, c := range a.Causes {
		out = append(out, random.Finding{
			Cause: c.Cause, Share: c.Share, Confidence: c.Confidence, Because: c.Because,
			Culprits: []string{c.Culprit},
		})
	}
	return out
}

// Table prints the report.
func (r Report) Table(w io.Writer) {
	const line = "%-16s %11s %13s %15s %13s %8s\n"
	fmt.Fprintf(w, line, "tool", "first true", "causes named", "healthy, wrong", "shares close", "culprit")
	for _, g := range r.Tools {
		f := g.Figures
		fmt.Fprintf(w, line, g.Tool, of(f.FirstNamed), of(f.Named), of(f.HealthyWrong), of(f.ShareClose),
			of(f.CulpritNamed))
	}
}

func of(r random.Rate) string { return fmt.Sprintf("%d of %d", r.Count, r.Of) }
