package grade

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
)

// AppsSchema names the JSON of an AppsSummary.
const AppsSchema = "slowpath.grade-apps/v1"

// AppResult is one graded run of an application.
type AppResult struct {
	App   apps.Name `json:"app"`
	Path  string    `json:"path"`
	Fault string    `json:"fault,omitempty"`
	// Operations are those of the time of the watch, as the users of the application saw them.
	Operations []apps.Operation `json:"operations"`
	Tiers      []TierResult     `json:"tiers"` // of the same recording, the tier that sees most first
	Seconds    float64          `json:"seconds"`
	Skipped    string           `json:"skipped,omitempty"`
	Error      string           `json:"error,omitempty"`
	Ending     string           `json:"ending,omitempty"` // what went wrong after the watch
}

// TierResult is the verdict of a tier.
type TierResult struct {
	Tier       string   `json:"tier"`
	Right      bool     `json:"right"`
	Got        string   `json:"got"`
	Confidence float64  `json:"confidence"`
	Share      float64  `json:"excess_share"`
	Others     []string `json:"others"`
	SlowCalls  int      `json:"slow_calls"`
}

// RunApp makes the scenario of an application, lets doctor watch it into a recording at a path, and judges that.
func RunApp(ctx context.Context, a scenario.AppScenario, server servers.Name, doctor Doctor, path string,
	log io.Writer,
) AppResult {
	out := AppResult{App: a.App, Path: a.Path, Fault: a.Fault, Operations: []apps.Operation{}, Tiers: []TierResult{}}
	var running *apps.Running
	sc := a.Scenario()
	sc.Args = []string{"--record", path}
	sc.Make = func(ctx context.Context, l *scenario.Lab) (scene scenario.Scene, err error) {
		scene, running, err = a.Make(ctx, l)
		return scene, err
	}
	r := Run(ctx, sc, server, func(ctx context.Context, args []string) (verdict.Diagnosis, error) {
		begin := time.Now()
		d, err := doctor(ctx, args)
		out.Operations = running.Stats().Since(begin).Operations()
		return d, err
	}, log)
	out.Skipped, out.Error, out.Ending, out.Seconds = r.Skipped, r.Error, r.Ending, r.Seconds
	if out.Skipped == "" && out.Error == "" {
		if err := out.judge(path, sc.Cause); err != nil {
			out.Error = err.Error()
		}
	}
	return out
}

// judge judges a recording at all tiers.
func (r *AppResult) judge(path, truth string) error {
	rec, err := recording.Open(path)
	if err != nil {
		return fmt.Errorf("reading the recording: %w", err)
	}
	for _, t := range recording.Tiers {
		one := Result{Truth: truth, Others: []string{}}
		d := verdict.Diagnose(rec.Without(t.Without...), "grade")
		one.judge(d)
		r.Tiers = append(r.Tiers, TierResult{
			Tier: t.Name, Right: one.Right(), Got: one.Got, Confidence: one.Confidence, Share: one.Share,
			Others: one.Others, SlowCalls: d.Latency.SlowCalls,
		})
	}
	return nil
}

// Passed reports whether the verdicts are right. With less than T2 a fault may stay unnamed; without a fault all tiers
// count.
func (r AppResult) Passed() bool {
	return r.Error == "" && !slices.ContainsFunc(r.Tiers, func(t TierResult) bool {
		return !t.Right && (r.Fault == "" || t.Tier == recording.Tiers[0].Name)
	})
}

// right reports whether a tier is right.
func (r AppResult) right(tier string) bool {
	return slices.ContainsFunc(r.Tiers, func(t TierResult) bool { return t.Tier == tier && t.Right })
}

// AppsSummary is the result of all runs.
type AppsSummary struct {
	Schema  string      `json:"schema"`
	Results []AppResult `json:"results"`
	Tiers   []AppsTally `json:"tiers"`
	Skipped int         `json:"skipped"`
	Failed  int         `json:"failed"` // runs that ended in an error
}

// AppsTally counts the right verdicts of a tier.
type AppsTally struct {
	Tier    string `json:"tier"`
	Healthy int    `json:"healthy_kept"` // of the runs without a fault
	Of      int    `json:"healthy"`
	Named   int    `json:"named_first"` // of the runs with a fault
	Faults  int    `json:"faults"`
}

// SummariseApps sums up the results of runs.
func SummariseApps(rs []AppResult) AppsSummary {
	s := AppsSummary{Schema: AppsSchema, Results: rs}
	for _, t := range recording.Tiers {
		s.Tiers = append(s.Tiers, tally(t.Name, rs))
	}
	for _, r := range rs {
		switch {
		case r.Skipped != "":
			s.Skipped++
		case r.Error != "":
			s.Failed++
		}
	}
	return s
}

func tally(tier string, rs []AppResult) AppsTally {
	t := AppsTally{Tier: tier}
	for _, r := range rs {
		if r.Skipped != "" || r.Error != "" {
			continue
		}
		all, right := &t.Of, &t.Healthy
		if r.Fault != "" {
			all, right = &t.Faults, &t.Named
		}
		*all++
		if r.right(tier) {
			*right++
		}
	}
	return t
}

// Passed reports whether all runs passed that were not skipped.
func (s AppsSummary) Passed() bool {
	return !slices.ContainsFunc(s.Results, func(r AppResult) bool { return r.Skipped == "" && !r.Passed() })
}

// Line prints a result as one line, and one for each operation.
func (r AppResult) Line(w io.Writer) {
	beside := r.Fault
	if beside == "" {
		beside = "healthy"
	}
	name := fmt.Sprintf("%-16s %-10s %-22s", r.App, r.Path, beside)
	switch {
	case r.Skipped != "":
		fmt.Fprintf(w, "skip  %s %s\n", name, r.Skipped)
		return
	case r.Error != "":
		fmt.Fprintf(w, "FAIL  %s %s\n", name, r.Error)
		return
	}
	mark := "ok   "
	if !r.Passed() {
		mark = "WRONG"
	}
	fmt.Fprintf(w, "%s %s", mark, name)
	for _, t := range r.Tiers {
		fmt.Fprintf(w, " %s %s", t.Tier, t)
	}
	fmt.Fprintf(w, "  [%.0f s]\n", r.Seconds)
	for _, o := range r.Operations {
		fmt.Fprintf(w, "        %s: %d, %s, p50 %v, p99 %v, max %v\n", o.Name, o.Done, format.Count(o.Errors, "error"),
			format.Duration(o.Histogram.Quantile(0.5)), format.Duration(o.Histogram.Quantile(0.99)),
			format.Duration(o.Max))
	}
	endingLine(w, r.Ending)
}

// String is the verdict, with what was found.
func (t TierResult) String() string {
	text := t.Got
	if t.Confidence > 0 {
		text += fmt.Sprintf(" (%.0f %%, %.2f)", t.Share*100, t.Confidence)
	}
	if len(t.Others) > 0 {
		text += " then " + strings.Join(t.Others, " ")
	}
	return text
}

// Table prints the counts of each tier.
func (s AppsSummary) Table(w io.Writer) {
	fmt.Fprintf(w, "\n%-6s %18s %24s\n", "tier", "healthy kept", "fault named first")
	for _, t := range s.Tiers {
		fmt.Fprintf(w, "%-6s %9d of %5d %15d of %5d\n", t.Tier, t.Healthy, t.Of, t.Named, t.Faults)
	}
	fmt.Fprintf(w, "skipped: %d; failed: %d\n", s.Skipped, s.Failed)
}
