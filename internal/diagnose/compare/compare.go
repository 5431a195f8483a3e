package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/stats"
)

// Notable is the least change of a metric that makes a comparison better or worse, as a share.
// Bound: noted, equal watches of one host differ by as much at other times of the day.
const Notable = 0.1

// Of compares two sides by their names. notable is the least change that counts; see Notable.
func Of(before, after Side, names [2]string, notable float64) Comparison {
	c := Comparison{
		Schema: Schema, Before: watchOf(before, names[0]), After: watchOf(after, names[1]),
		Findings: findings(before, after), Callers: callers(before, after),
		Versions: differences(before.versions, after.versions), Settings: settings(before.settings, after.settings),
		Metrics: []Metric{},
	}
	for _, name := range []string{account.OfUsers, account.OfLoad, account.OfProbe} {
		b, a := population(before, name), population(after, name)
		if b == nil || a == nil || b.At != a.At {
			continue
		}
		c.Population = name
		c.Metrics = metrics(before, after, b, a)
		if name == account.OfUsers {
			c.Metrics = append(c.Metrics, stalls(before, after, b, a))
		}
		break
	}
	if before.attempts > 0 && after.attempts > 0 {
		c.Metrics = append(c.Metrics, share("failed_share", before.failed, before.attempts, after.failed,
			after.attempts))
	}
	c.States = states(before, after)
	c.LostBefore, c.LostAfter = lostPerCall(before), lostPerCall(after)
	c.Verdict = judge(&c, notable)
	c.Summary = c.say(notable)
	return c
}

func watchOf(s Side, name string) Watch {
	d := s.Diagnosis
	w := Watch{
		Name: name, Target: d.Target.Address, Start: d.Window.Start.Format("2006-01-02T15:04:05Z07:00"),
		Seconds: d.Window.Seconds, Verdict: d.Verdict, Summary: d.Summary, Sources: []string{},
	}
	for _, source := range d.Sources {
		if source.Used {
			w.Sources = append(w.Sources, source.Name)
		}
	}
	return w
}

func population(s Side, name string) *verdict.Population {
	for i := range s.Diagnosis.Populations {
		if p := &s.Diagnosis.Populations[i]; p.Name == name {
			return p
		}
	}
	return nil
}

func metrics(before, after Side, b, a *verdict.Population) []Metric {
	type value struct {
		name          string
		higher        bool
		before, after float64
		of            func(interval) float64
	}
	rate := func(p *verdict.Population, s Side) float64 {
		return float64(p.Calls) / max(s.Diagnosis.Window.Watched(), 1e-9)
	}
	all := []value{
		{"calls_per_second", true, rate(b, before), rate(a, after), func(v interval) float64 {
			return float64(v.calls.TotalCount()) / v.seconds()
		}},
		{"p50_ns", false, float64(b.P50Ns), float64(a.P50Ns), func(v interval) float64 {
			return float64(v.calls.ValueAtQuantile(50))
		}},
		{"p99_ns", false, float64(b.P99Ns), float64(a.P99Ns), func(v interval) float64 {
			return float64(v.calls.ValueAtQuantile(99))
		}},
	}
	measured := make([]stats.Metric, len(all))
	for i, v := range all {
		measured[i] = stats.Metric{
			Name: v.name, HigherIsBetter: v.higher, Old: repeats(before.intervals[b.Name], v.of),
			New: repeats(after.intervals[a.Name], v.of),
		}
	}
	out := []Metric{}
	for i, r := range stats.Compare(measured) {
		m := Metric{Name: all[i].name, Before: all[i].before, After: all[i].after, Verdict: Unknown}
		if r.Verdict != stats.Incomparable {
			m.Change, m.P = &r.Change, &r.P
		}
		if !math.IsInf(r.Low, 0) && r.Verdict != stats.Incomparable {
			m.Low, m.High = &r.Low, &r.High
		}
		switch r.Verdict {
		case stats.Faster:
			m.Verdict = Better
		case stats.Slower:
			m.Verdict = Worse
		case stats.NoDifference:
			m.Verdict = Same
		}
		out = append(out, m)
	}
	return append(out, share("slow_share", b.SlowCalls, b.Calls, a.SlowCalls, a.Calls))
}

// stalls compares how often the users' calls stalled. Stalls come in groups: what is tested is in how many of the parts
// of each watch there was one.
func stalls(before, after Side, b, a *verdict.Population) Metric {
	with := func(all []interval) (n int) {
		for _, v := range all {
			n += min(v.stalls, 1)
		}
		return n
	}
	perMinute := func(p *verdict.Population, s Side) float64 {
		return 60 * float64(p.Stalls) / max(s.Diagnosis.Window.Watched(), 1e-9)
	}
	old, now := before.intervals[b.Name], after.intervals[a.Name]
	m := share("stalls_per_minute", with(old), len(old), with(now), len(now))
	if m.Before, m.After = perMinute(b, before), perMinute(a, after); len(old) == 0 || len(now) == 0 {
		m.Verdict = Unknown
	}
	return m
}

// share compares two shares by their intervals (Wilson): they differ where these have nothing in common.
func share(name string, of, all, ofAfter, allAfter int) Metric {
	m := Metric{
		Name: name, Before: float64(of) / float64(max(all, 1)), After: float64(ofAfter) / float64(max(allAfter, 1)),
		Verdict: Same,
	}
	lowB, highB := stats.Proportion(of, all)
	lowA, highA := stats.Proportion(ofAfter, allAfter)
	switch {
	case lowA > highB:
		m.Verdict = Worse
	case highA < lowB:
		m.Verdict = Better
	}
	return m
}

func findings(before, after Side) []Finding {
	out := []Finding{}
	add := func(fs []cause.Finding, set func(*Finding, float64)) {
		for _, f := range fs {
			i := slices.IndexFunc(out, func(o Finding) bool { return o.Cause == f.Cause })
			if i < 0 {
				i, out = len(out), append(out, Finding{Cause: f.Cause, Title: f.Title})
			}
			set(&out[i], f.ExcessShare)
		}
	}
	add(before.Diagnosis.Findings, func(f *Finding, share float64) { f.Before, f.Change = share, "gone" })
	add(after.Diagnosis.Findings, func(f *Finding, share float64) {
		f.After = share
		if f.Change == "" {
			f.Change = "new"
		} else {
			f.Change = "stays"
		}
	})
	return out
}

func states(before, after Side) []State {
	at := map[[2]string]*State{}
	for _, side := range []struct {
		Side
		of func(*State) *float64
	}{{before, func(s *State) *float64 { return &s.Before }}, {after, func(s *State) *float64 { return &s.After }}} {
		calls := 0
		for _, p := range side.Diagnosis.Populations {
			calls += p.Calls
		}
		for _, s := range side.Diagnosis.Account {
			k := [2]string{s.Actor, s.State}
			if at[k] == nil {
				at[k] = &State{Actor: s.Actor, State: s.State}
			}
			*side.of(at[k]) = float64(s.Ns) / float64(max(calls, 1)) * 1000
		}
	}
	out := []State{}
	for _, s := range at {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b State) int {
		return cmp.Or(cmp.Compare(math.Abs(b.After-b.Before), math.Abs(a.After-a.Before)),
			strings.Compare(a.Actor+a.State, b.Actor+b.State))
	})
	return out
}

func callers(before, after Side) []Caller {
	out := []Caller{}
	names := maps.Clone(before.callers)
	maps.Copy(names, after.callers)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, Caller{name, before.callers[name], after.callers[name]})
	}
	slices.SortStableFunc(out, func(a, b Caller) int {
		return cmp.Compare(max(b.Before, b.After), max(a.Before, a.After))
	})
	return out
}

// settings compares the configurations of nodes with the same address; where the addresses differ, in their order.
func settings(before, after []configuration) []Difference {
	out := []Difference{}
	for i, b := range before {
		k := slices.IndexFunc(after, func(a configuration) bool { return a.node == b.node })
		if k < 0 && len(before) == len(after) {
			k = i
		}
		if k < 0 {
			continue
		}
		for _, d := range differences(b.values, after[k].values) {
			if len(before) > 1 {
				d.Name += " at " + b.node
			}
			out = append(out, d)
		}
	}
	return out
}

func differences(before, after map[string]string) []Difference {
	out := []Difference{}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			out = append(out, Difference{name, before[name], after[name]})
		}
	}
	return out
}

// judge says whether callers are better off: by what is shown of latencies, of slow calls and of failed ones, as far as
// it is notable. Where one got better and another worse, the one decides that changed the time of calls by more. A
// changed number of calls is neither.
func judge(c *Comparison, notable float64) string {
	most := map[string]float64{}
	known := false
	for _, m := range c.Metrics {
		if !m.judges() || m.Verdict == Unknown {
			continue
		}
		known = known || m.Name != "failed_share"
		if (m.Verdict == Better || m.Verdict == Worse) && c.notable(m, notable) {
			most[m.Verdict] = max(most[m.Verdict], c.weight(m))
		}
	}
	switch {
	case most[Worse] > 0 && most[Worse] >= most[Better]:
		return Worse
	case most[Better] > 0:
		return Better
	case known:
		return Same
	}
	return Unknown
}

// judges reports whether a metric says that callers are better or worse off.
func (m Metric) judges() bool { return m.Name != "calls_per_second" }

// weight is by how much a metric changed the time of calls, in nanoseconds for each. p50 is of all calls, p99 of one in
// a hundred. That more calls fail is worse than any time that others gain; that fewer do is as good as what
// callers lost by that.
func (c *Comparison) weight(m Metric) float64 {
	switch m.Name {
	case "p50_ns":
		return math.Abs(m.After - m.Before)
	case "p99_ns":
		return math.Abs(m.After-m.Before) / 100
	case "failed_share":
		if m.Verdict == Worse {
			return math.Inf(1)
		}
		return max(c.LostBefore-c.LostAfter, 0)
	}
	return math.Abs(c.LostAfter - c.LostBefore)
}

// notable reports whether a metric changed by at least a share. A change of the share of slow calls is as large as that
// of what callers lost for each call, by the median call. That calls fail is always notable.
func (c *Comparison) notable(m Metric, least float64) bool {
	switch m.Name {
	case "failed_share":
		return true
	case "slow_share", "stalls_per_minute":
		i := slices.IndexFunc(c.Metrics, func(of Metric) bool { return of.Name == "p50_ns" })
		return i >= 0 && math.Abs(c.LostAfter-c.LostBefore) >= least*c.Metrics[i].Before
	}
	return m.Change != nil && math.Abs(*m.Change) >= least
}

// lostPerCall is the lost time of a side by the number of its calls, in nanoseconds.
func lostPerCall(s Side) float64 {
	calls := 0
	for _, p := range s.Diagnosis.Populations {
		calls += p.Calls
	}
	return float64(s.Diagnosis.Excess.Ns) / float64(max(calls, 1))
}

// say is the comparison in one sentence, what changed the time of calls most first.
func (c *Comparison) say(notable float64) string {
	whose := map[string]string{
		account.OfUsers: "the callers' calls", account.OfLoad: "the calls of the load",
		account.OfProbe: "slowpath's own calls",
	}[c.Population]
	var parts, against []string
	heaviest := slices.SortedStableFunc(slices.Values(c.Metrics), func(a, b Metric) int {
		return cmp.Compare(c.weight(b), c.weight(a))
	})
	for _, m := range heaviest {
		switch {
		case !m.judges() || !c.notable(m, notable) || m.Verdict != Better && m.Verdict != Worse:
		case m.Verdict == c.Verdict:
			parts = append(parts, m.text())
		default:
			against = append(against, m.text())
		}
	}
	if len(against) > 0 {
		parts = append(parts, "though "+strings.Join(against, " and "))
	}
	for _, f := range c.Findings {
		if f.Change != "stays" {
			parts = append(parts, f.Cause+" is "+f.Change)
		}
	}
	what := strings.Join(parts, ", ")
	switch c.Verdict {
	case Better:
		return fmt.Sprintf("Better: of %s %s.", whose, what)
	case Worse:
		return fmt.Sprintf("Worse: of %s %s.", whose, what)
	case Same:
		if what != "" {
			return fmt.Sprintf("No notable difference of %s; %s.", whose, what)
		}
		return fmt.Sprintf("No notable difference of %s was shown.", whose)
	}
	return "Unknown: the two have no calls that were timed at the same end."
}

func (m Metric) text() string {
	switch m.Name {
	case "failed_share":
		return "the share of failed ones went from " + percent(m.Before) + " to " + percent(m.After)
	case "slow_share":
		return "the share of slow ones went from " + percent(m.Before) + " to " + percent(m.After)
	case "stalls_per_minute":
		return "stalls went from " + format.Rounded(m.Before) + " to " + format.Rounded(m.After) + " per minute"
	case "p50_ns":
		return "p50 went from " + format.Brief(int64(m.Before)) + " to " + format.Brief(int64(m.After))
	}
	return "p99 went from " + format.Brief(int64(m.Before)) + " to " + format.Brief(int64(m.After))
}
