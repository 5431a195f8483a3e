package random

import (
	"math"
	"slices"
	"sync"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// Report is the result of all runs. The numbers at its top are those of the tier that sees most.
type Report struct {
	Schema        string          `json:"schema"`
	Version       string          `json:"version"`
	Only          servers.Name    `json:"only_server,omitempty"`
	Seed          uint64          `json:"seed"` // of the first run
	N             int             `json:"n"`    // runs that were asked for
	FirstNamed    int             `json:"first_named"`
	Named         int             `json:"named"`
	FalseFindings int             `json:"false_findings"`
	HealthyRuns   int             `json:"healthy_runs"`
	Brier         float64         `json:"brier"`
	ShareError    float64         `json:"share_error"`
	Unexplained   float64         `json:"unexplained"`
	FalseAlarms   Rate            `json:"false_alarms_of_test"` // 0 of 0: runs without a fault are not tested any more
	Failed        int             `json:"failed"`               // runs that were skipped or failed
	Disturbed     int             `json:"disturbed"`            // by something else than the faults: all is open
	Tiers         map[string]Tier `json:"tiers"`
	Runs          []Run           `json:"runs"`
}

// Tier is how right the verdicts of a tier are.
type Tier struct {
	FaultRuns   int  `json:"fault_runs"`   // runs in which a fault cost the callers time
	HealthyRuns int  `json:"healthy_runs"` // the others
	FirstNamed  Rate `json:"first_named"`  // of fault runs: the first finding is true
	FirstShown  Rate `json:"first_shown"`  // the same of those whose causes all have evidence at this tier
	Named       Rate `json:"named"`        // of true causes: they are among the findings
	HealthyKept Rate `json:"healthy_kept"` // of healthy runs: the verdict is healthy, or names what is open
	// FalseFindings are findings that are neither true nor a consequence of what is.
	FalseFindings Rate `json:"false_findings"`
	// FalseInHealthy are false findings of healthy runs; HealthyWrong are the healthy runs that have some.
	FalseInHealthy         int     `json:"false_in_healthy"`
	FalsePerHundredHealthy float64 `json:"false_per_100_healthy_runs"`
	HealthyWrong           Rate    `json:"healthy_wrong"`
	// FalseOfFaults are those of them whose fault was on, and cost nothing that could be measured.
	FalseOfFaults int `json:"false_of_faults"`
	// Brier is the mean of the squared differences of confidence and truth, over all findings; 0 is best.
	Brier float64 `json:"brier"`
	// ShareError is the mean difference of the share of the excess and that of the truth, over named causes.
	ShareError float64 `json:"share_error"`
	// ShareClose is of named causes: the share is within ten points of that of the truth.
	ShareClose Rate `json:"share_close"`
	// CulpritNamed is of named causes that have a culprit: it is the first that the finding names.
	CulpritNamed Rate `json:"culprit_named"`
	// Unexplained is the median of the unexplained shares of the excess, over fault runs.
	Unexplained float64                `json:"unexplained"`
	Causes      map[string]CauseResult `json:"causes"`
	Calibration []Bin                  `json:"calibration"`
}

// CauseResult is how right verdicts are about one cause.
type CauseResult struct {
	Truths int  `json:"truths"` // runs in which it cost the callers time
	First  Rate `json:"first"`  // of these: it is the first finding
	Named  Rate `json:"named"`  // of these: it is among the findings
	False  int  `json:"false"`  // findings of it that are neither true nor a consequence of what is
	Right  Rate `json:"right"`  // of findings of it: they are not false
}

// Rate is a share with its interval at 95 % (Wilson).
type Rate struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Share float64 `json:"share"` // 0 of nothing
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Bin are the findings with a confidence in a range.
type Bin struct {
	From       float64 `json:"from"`
	To         float64 `json:"to"`
	Confidence float64 `json:"confidence"` // their mean
	Right      Rate    `json:"right"`
}

// bins are the ends of the ranges of confidence. Below 0.6 a verdict says "Probably".
var bins = []float64{0, 0.3, 0.6, 0.8, 0.9, 1}

func newRate(count, of int) Rate {
	r := Rate{Count: count, Of: of}
	if of > 0 {
		r.Share = float64(count) / float64(of)
	}
	r.Low, r.High = stats.Proportion(count, of)
	return r
}

// Summarise sums up runs.
func Summarise(runs []Run, seed uint64, n int, version string) Report {
	r := Report{
		Schema: grade.Schema, Version: version, Seed: seed, N: n, Tiers: map[string]Tier{}, Runs: runs,
	}
	var judged []Run
	for _, run := range runs {
		if run.Failed() {
			r.Failed++
			continue
		}
		judged = append(judged, run)
		if run.disturbed() {
			r.Disturbed++
		}
	}
	if len(runs) > 0 {
		r.Only = runs[0].Only // a series has one
	}
	for _, tier := range recording.Tiers {
		r.Tiers[tier.Name] = tierOf(judged, tier.Name)
	}
	best := r.Tiers[recording.Tiers[0].Name]
	r.FirstNamed, r.Named, r.FalseFindings = best.FirstNamed.Count, best.Named.Count, best.FalseFindings.Count
	r.HealthyRuns, r.Brier, r.ShareError, r.Unexplained = best.HealthyRuns, best.Brier, best.ShareError,
		best.Unexplained
	return r
}

// Passed reports whether no run failed, and all verdicts with all sources were right.
func (r Report) Passed() bool {
	best := r.Tiers[recording.Tiers[0].Name]
	return r.FirstNamed >= best.FaultRuns && best.HealthyKept.Count >= best.HealthyRuns && r.Failed == 0
}

// counter counts the runs of a tier.
type counter struct {
	Tier
	first, named, truths, kept, wrong, findings int
	tier                                        string
	shown, firstShown                           int
	shareErrors                                 float64
	healthyWrong, close, culprits, culprit      int
	unexplained                                 []float64
	sure                                        binnedBy
	causes                                      map[string]*causeCount
}

// binnedBy are findings by their confidence.
type binnedBy struct {
	bins    []binned
	squares float64 // of the differences from 1 where they are right, else from 0
}

type binned struct {
	right, n int
	sum      float64
}

func (b *binnedBy) add(sure float64, right bool) {
	if b.bins == nil {
		b.bins = make([]binned, len(bins)-1)
	}
	i := len(bins) - 2
	for i > 0 && sure < bins[i] {
		i--
	}
	of, was := &b.bins[i], 0.0
	of.n++
	of.sum += sure
	if right {
		of.right++
		was = 1
	}
	b.squares += (sure - was) * (sure - was)
}

func (b *binnedBy) result(findings int) (all []Bin, brier float64) {
	all = []Bin{}
	for i := range bins[1:] {
		var one binned
		if b.bins != nil {
			one = b.bins[i]
		}
		all = append(all, Bin{bins[i], bins[i+1], one.sum / float64(max(1, one.n)), newRate(one.right, one.n)})
	}
	return all, b.squares / float64(max(1, findings))
}

type causeCount struct{ truths, first, named, wrong, findings int }

// Figures are how right the judgements of a tool are, by its name.
func Figures(runs []Run, tool string) Tier { return tierOf(runs, tool) }

func tierOf(runs []Run, name string) Tier {
	c := &counter{tier: name, causes: map[string]*causeCount{}}
	for i := range runs {
		c.add(&runs[i], runs[i].Tiers[name])
	}
	return c.result()
}

// evidence is what each cause needs, by its id.
var evidence = sync.OnceValue(func() map[string]cause.Needs {
	all := map[string]cause.Needs{}
	for _, c := range cause.Catalogue() {
		all[c.ID] = c.Needs
	}
	return all
})

// shows reports whether a tier has evidence of all causes that are true of a run.
func shows(r *Run, tier string) bool {
	return !slices.ContainsFunc(r.Truth, func(t Truth) bool { return !evidence()[t.Cause].Shows(tier) })
}

func (c *counter) of(cause string) *causeCount {
	if c.causes[cause] == nil {
		c.causes[cause] = &causeCount{}
	}
	return c.causes[cause]
}

func (c *counter) add(r *Run, j Judgement) {
	before := c.wrong
	for _, f := range j.Findings {
		c.addFinding(f)
	}
	if r.Healthy() {
		c.HealthyRuns++
		if wrong := c.wrong - before; wrong > 0 {
			c.FalseInHealthy += wrong
			c.healthyWrong++
		}
		if j.saysHealthy() {
			c.kept++
		}
		return
	}
	c.FaultRuns++
	first := 0
	if r.isTrue(j.First) {
		first = 1
	}
	c.first += first
	if shows(r, c.tier) {
		c.shown++
		c.firstShown += first
	}
	if j.ExcessNs > 0 {
		c.unexplained = append(c.unexplained, j.Unexplained)
	}
	for _, t := range r.Truth {
		c.addTruth(r, t, j)
	}
}

// closeShare is by how much a share may be off: ten points, and an error of a binary fraction.
const closeShare = 0.1 + 1e-9

// blames reports whether a finding names the culprit of a truth first: by its name, or by its process where CLIENT LIST
// did not have the name, as behind a proxy.
func (r *Run) blames(f Finding, t Truth) bool {
	if len(f.Culprits) == 0 {
		return false
	}
	return f.Culprits[0] == t.Culprit ||
		f.Culprits[0] == "" && t.Culprit == callersName && f.CulpritPID != 0 && f.CulpritPID == r.CallerPID
}

func (c *counter) addTruth(r *Run, t Truth, j Judgement) {
	one := c.of(t.Cause)
	one.truths++
	c.truths++
	if t.is(j.First) {
		one.first++
	}
	for _, f := range j.Findings {
		if t.is(f.Cause) {
			one.named++
			c.named++
			off := math.Abs(f.Share - t.Share)
			c.shareErrors += off
			if off <= closeShare {
				c.close++
			}
			if t.Culprit != "" {
				c.culprits++
				if r.blames(f, t) {
					c.culprit++
				}
			}
			return
		}
	}
}

func (c *counter) addFinding(f Finding) {
	c.findings++
	c.of(f.Cause).findings++
	c.sure.add(f.Confidence, f.Right)
	if f.Right {
		return
	}
	c.wrong++
	c.of(f.Cause).wrong++
	if f.Made {
		c.FalseOfFaults++
	}
}

func (c *counter) result() Tier {
	t := c.Tier
	t.FirstShown = newRate(c.firstShown, c.shown)
	t.FirstNamed, t.Named = newRate(c.first, c.FaultRuns), newRate(c.named, c.truths)
	t.HealthyKept, t.FalseFindings = newRate(c.kept, c.HealthyRuns), newRate(c.wrong, c.findings)
	t.Calibration, t.Brier = c.sure.result(c.findings)
	t.ShareError, t.ShareClose = c.shareErrors/float64(max(1, c.named)), newRate(c.close, c.named)
	t.HealthyWrong = newRate(c.healthyWrong, c.HealthyRuns)
	t.CulpritNamed = newRate(c.culprit, c.culprits)
	t.FalsePerHundredHealthy = 100 * float64(c.FalseInHealthy) / float64(max(1, c.HealthyRuns))
	t.Unexplained = stats.Median(c.unexplained)
	t.Causes = map[string]CauseResult{}
	for cause, n := range c.causes {
		t.Causes[cause] = CauseResult{
			Truths: n.truths, First: newRate(n.first, n.truths), Named: newRate(n.named, n.truths), False: n.wrong,
			Right: newRate(n.findings-n.wrong, n.findings),
		}
	}
	return t
}
