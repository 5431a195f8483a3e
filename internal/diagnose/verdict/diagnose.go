package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Bounds of a verdict.
const (
	minConfidence = 0.3
	worstCalls    = 3
)

// Diagnose judges a recording. version is that of the program that judges, not of the one that recorded.
func Diagnose(rec *recording.Recording, version string) Diagnosis {
	c := facts.New(rec)
	d := Diagnosis{
		Schema: Schema, Version: version, Target: targetOf(rec),
		Window:     Window{time.Unix(0, c.StartNs).UTC(), float64(c.EndNs-c.StartNs) / 1e9},
		Sources:    sources(rec),
		Whom:       whomOf(rec),
		Latency:    latencyOf(c.Ledger),
		Findings:   order(explain(c), slowness(c)),
		Account:    states(c.Ledger),
		Excess:     excess(c),
		Worst:      worst(c.Ledger),
		OnCPU:      onCPU(rec, c.Ledger),
		BlindSpots: blindSpots(rec),
		Cost:       costOfWatch(c),
	}
	d.Verdict, d.Summary = verdict(c, d)
	return d
}

func whomOf(rec *recording.Recording) *recording.Whom {
	if w, ok := recording.WhomOf(rec.Meta); ok {
		return &w
	}
	return nil
}

// explain asks every cause about every node and joins what it says of several nodes into one finding.
func explain(c *facts.Case) []cause.Finding {
	out := []cause.Finding{}
	for _, why := range cause.Catalogue() {
		var all *cause.Finding
		for _, n := range c.Nodes {
			f := why.Explain(n)
			if f == nil || f.Confidence < minConfidence || c.Ledger.ExcessNs > 0 && f.ExcessShare < facts.MinShare {
				continue
			}
			if len(c.Nodes) > 1 {
				for i := range f.Evidence {
					f.Evidence[i].Text = n.Address + ": " + f.Evidence[i].Text
				}
			}
			all = join(all, f)
		}
		if why.Whole != nil {
			all = why.Whole(c, all)
		}
		if all == nil {
			continue
		}
		all.Cause, all.Layer = why.ID, why.Layer
		if all.Title == "" {
			all.Title = why.Title
		}
		out = append(out, fill(*all))
	}
	return out
}

func join(a, b *cause.Finding) *cause.Finding {
	if a == nil {
		return b
	}
	a.SlowCalls += b.SlowCalls
	a.ExcessShare = min(1, a.ExcessShare+b.ExcessShare)
	a.Confidence = max(a.Confidence, b.Confidence)
	a.Leads = a.Leads || b.Leads
	a.Independent = a.Independent && b.Independent
	a.IndependentOf = slices.DeleteFunc(a.IndependentOf,
		func(root string) bool { return !slices.Contains(b.IndependentOf, root) })
	a.Evidence = append(a.Evidence, b.Evidence...)
	a.Against = append(a.Against, b.Against...)
	return a
}

// fill makes absent lists empty lists: JSON readers get [] and not null.
func fill(f cause.Finding) cause.Finding {
	if f.Evidence == nil {
		f.Evidence = []cause.Evidence{}
	}
	if f.Against == nil {
		f.Against = []cause.Evidence{}
	}
	if f.Fix == nil {
		f.Fix = []string{}
	}
	if f.See == nil {
		f.See = []string{}
	}
	return f
}

// order puts findings by share times confidence, then every consequence behind its root cause. Findings of slow calls
// speak of the part of all the time of calls that their excess makes up, those that rest on a pattern of all calls (a
// queue, a connection per call) of the whole.
func order(fs []cause.Finding, slowness float64) []cause.Finding {
	weight := func(f cause.Finding) float64 {
		w := f.ExcessShare * f.Confidence
		if f.SlowCalls > 0 {
			w *= slowness
		}
		return w
	}
	sort.SliceStable(fs, func(i, j int) bool {
		if fs[i].Leads != fs[j].Leads {
			return fs[i].Leads
		}
		return weight(fs[i]) > weight(fs[j])
	})
	found := map[string]int{}
	for i, f := range fs {
		found[f.Cause] = i
	}
	var out []cause.Finding
	placed := map[string]bool{}
	var place func(i int)
	place = func(i int) {
		f := fs[i]
		if placed[f.Cause] {
			return
		}
		placed[f.Cause] = true
		for _, root := range afterOf(f.Cause) {
			if j, ok := found[root]; ok && !f.Independent && !slices.Contains(f.IndependentOf, root) {
				place(j)
				if f.Because == "" {
					f.Because = root
				}
			}
		}
		out = append(out, f)
	}
	for i := range fs {
		place(i)
	}
	if out == nil {
		return []cause.Finding{}
	}
	return out
}

// slowness is the part of all the time of callers that the excess of their slow calls makes up. What they wait for a
// name server is time of theirs, but of no call that a source sees.
func slowness(c *facts.Case) float64 {
	var beside int64
	for _, n := range c.Nodes {
		beside += n.LookupNs(n.Callers())
	}
	calls := float64(max(c.Ledger.Users.TotalNs, 1))
	return c.Ledger.Slowness() * calls / (calls + float64(beside))
}

func afterOf(id string) []string {
	for _, c := range cause.Catalogue() {
		if c.ID == id {
			return c.After
		}
	}
	return nil
}

func targetOf(rec *recording.Recording) Target {
	t := Target{
		Address: rec.Meta[recording.MetaTarget], Kind: rec.Meta[recording.MetaKind],
		Server: rec.Meta[recording.MetaServer], Nodes: rec.Nodes(),
	}
	if t.Kind == "" {
		t.Kind = "unknown"
	}
	if t.Nodes == nil {
		t.Nodes = []string{}
	}
	return t
}

func sources(rec *recording.Recording) []recording.SourceStatus {
	if s := rec.SourceStatuses(); s != nil {
		return s
	}
	return []recording.SourceStatus{}
}

func latencyOf(l *account.Ledger) Latency {
	return Latency{
		Calls: l.Latency.Calls, SlowCalls: l.Users.Slow + l.Probe.Slow, SlowThresholdNs: l.ThresholdNs,
		UserCalls: l.Users.Calls, UserSlowCalls: l.Users.Slow, P50Ns: l.Latency.P50Ns, P99Ns: l.Latency.P99Ns,
		P999Ns: l.Latency.P999Ns, MaxNs: l.Latency.MaxNs,
	}
}

func states(l *account.Ledger) []State {
	out := []State{}
	for _, t := range l.Totals() {
		out = append(out, State{t.Actor, t.State, t.Ns, t.Share})
	}
	return out
}

func excess(c *facts.Case) Excess {
	e := Excess{Ns: c.Ledger.ExcessNs}
	for _, n := range c.Nodes {
		e.UnexplainedNs += n.Open().Ns
	}
	e.UnexplainedNs = min(e.UnexplainedNs, e.Ns) // by rounding
	return e
}

func worst(l *account.Ledger) []Worst {
	slow := append([]account.Account(nil), l.Slow...)
	sort.SliceStable(slow, func(i, j int) bool { return slow[i].DurationNs() > slow[j].DurationNs() })
	out := []Worst{}
	for _, a := range slow[:min(len(slow), worstCalls)] {
		w := Worst{
			Time: time.Unix(0, a.Call.IntendedNs).UTC(), Source: a.Call.Source, Conn: a.Call.Conn,
			Client: a.Call.Client, Op: a.Call.Op, Node: a.Call.Node, Ns: a.DurationNs(),
		}
		for _, s := range a.Segments {
			w.Segments = append(w.Segments, Part{
				s.Actor, s.State, s.FromNs - a.Call.IntendedNs,
				s.ToNs - a.Call.IntendedNs, s.Culprit,
			})
		}
		out = append(out, w)
	}
	return out
}

func blindSpots(rec *recording.Recording) []recording.BlindSpot {
	out := []recording.BlindSpot{}
	seen := map[recording.BlindSpot]bool{}
	for _, e := range rec.Events {
		if e.Kind != recording.KindBlindSpot {
			continue
		}
		var b recording.BlindSpot
		if json.Unmarshal([]byte(e.Detail), &b) == nil && !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	if n := rec.Meta[recording.MetaDropped]; n != "" {
		out = append(out, recording.BlindSpot{What: n + " rows of evidence", Why: "the recording could not be " +
			"written as fast as the sources saw", Enable: "record to a faster disk"})
	}
	return out
}

// costOfWatch is what the watch itself took of the server and of this host.
func costOfWatch(c *facts.Case) []cause.Evidence {
	out := []cause.Evidence{}
	for _, n := range c.Nodes {
		if s := n.Info("self.commands_usec"); len(s) > 0 {
			us := s.Growth()
			out = append(out, cause.Evidence{
				Source: recording.SourceServer, Value: us * 1e3, Unit: "ns",
				Text: fmt.Sprintf("slowpath's own commands took %.2f ms of server time on %s (%.3f %%)", us/1e3,
					n.Address, us/1e4/c.Seconds()),
			})
		}
	}
	if s := c.Rec.Series(recording.SourceHost, recording.SubjectSelf, "process.cpu_ns"); len(s) > 0 {
		ns, _ := s.Last()
		out = append(out, cause.Evidence{
			Source: recording.SourceHost, Value: ns, Unit: "ns",
			Text: fmt.Sprintf("slowpath itself used %.2f %% of one core", ns/1e7/c.Seconds()),
		})
	}
	return out
}
