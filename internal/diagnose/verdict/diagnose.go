// Package verdict makes the diagnosis of a recording: it asks every cause about every node, joins and orders what they
// find, and says it in one sentence. Diagnose is a pure function: no clock, no network, no files.
package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/law"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Diagnose judges a recording. version is that of the program that judges, not of the one that recorded.
func Diagnose(rec *recording.Recording, version string) Diagnosis { return Of(facts.New(rec), version) }

// Of is Diagnose of a recording whose facts are known.
func Of(c *facts.Case, version string) Diagnosis { return Stepwise(c, version, func(int, int) {}) }

// Stepwise is Of, and calls step before it asks each cause, with the cause's number from 1 and how many there are.
func Stepwise(c *facts.Case, version string, step func(nth, of int)) Diagnosis {
	rec := c.Rec
	d := Diagnosis{
		Schema: Schema, Version: version, Target: targetOf(rec),
		Window:        windowOf(c),
		Sources:       sources(rec),
		SelectedCalls: selectedCallsOf(rec),
		Populations:   populations(c),
		Latency:       latencyOf(c),
		Hops:          hopsOf(c),
		Callers:       callersOf(c),
		CallersTime:   callersTime(c),
		Worst:         worst(c.Ledger),
		OnCPU:         onCPU(rec, c.Ledger),
		Told:          told(c),
		BlindSpots:    blindSpots(c),
		Cost:          costOfWatch(c),
	}
	var rare *finding
	made := changes.Of(c)
	d.Changes = seen(made)
	d.Findings, d.LostTime, rare = findings(c, made, step)
	d.Excess, d.Account = d.LostTime.excess(), states(c.Ledger, d.LostTime)
	d.Excess.CallersNs = callTimeNs(c)
	d.Verdict, d.Summary = verdict(c, d)
	if d.Verdict == Inconclusive {
		d.Summary += elsewhere(c, d.CallersTime)
	}
	if d.Verdict == Healthy {
		d.Summary += rarely(c, rare) + elsewhere(c, d.CallersTime) + expired(c)
		for i := range d.Hops {
			d.Hops[i].Summary = "" // of a few slow calls nothing is to be said
		}
	}
	if rec.Used(recording.SourceCapture) {
		relabel(&d)
	}
	return d
}

func windowOf(c *facts.Case) Window {
	w := Window{Start: time.Unix(0, c.StartNs).UTC(), Seconds: float64(c.EndNs-c.StartNs) / 1e9}
	if c.Seconds() < w.Seconds {
		w.WatchedSeconds = c.Seconds()
	}
	return w
}

func selectedCallsOf(rec *recording.Recording) *recording.SelectedCalls {
	if w, ok := recording.SelectedCallsOf(rec.Meta); ok {
		return &w
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

func populations(c *facts.Case) []Population {
	out := []Population{}
	for _, p := range c.Ledger.Populations {
		of := Population{
			Name: p.Name, At: p.Side, Calls: p.Calls, SlowCalls: p.Slow, RecordedSlowCalls: p.Recorded,
			P50Ns: p.P50Ns, P99Ns: p.P99Ns, P999Ns: p.P999Ns, MaxNs: p.MaxNs,
			WireP99Ns: p.WireP99Ns,
		}
		switch p.Name {
		case account.OfProbe:
			of.FailedCalls = nodes.OwnFailuresOf(c).Failed
		case account.OfUsers:
			of.Stalls, of.StalledNs = len(c.Ledger.Stalls), c.Ledger.Users.SlowNs
			for _, n := range c.Nodes {
				lost := nodes.LostCallsOf(n, facts.Span{FromNs: c.StartNs, ToNs: c.EndNs})
				of.FailedCalls += lost.Calls - lost.OfProxies
			}
		}
		out = append(out, of)
	}
	return out
}

func latencyOf(c *facts.Case) Latency {
	l := c.Ledger
	fresh := l.FreshThresholdNs
	if fresh <= l.ThresholdNs {
		fresh = 0
	}
	return Latency{
		FreshSlowThresholdNs: fresh,
		FailedCalls:          nodes.OwnFailuresOf(c).Failed,
		Calls:                l.Latency.Calls, SlowCalls: l.Users.Slow + l.Probe.Slow, SlowThresholdNs: l.ThresholdNs,
		UserCalls: l.Users.Calls, UserSlowCalls: l.Users.Slow, P50Ns: l.Latency.P50Ns, P99Ns: l.Latency.P99Ns,
		P999Ns: l.Latency.P999Ns, MaxNs: l.Latency.MaxNs,
	}
}

func states(l *account.Ledger, lost LostTime) []State {
	out := []State{}
	for _, t := range l.Totals() {
		out = append(out, State{t.Actor, t.State, t.Ns, t.Share, lost.in(t.Actor, t.State)})
	}
	return out
}

// slowCallsNoticed reports whether anybody notices that calls were slow: they are a pattern of all calls or of those of
// one process, one of them takes long, or together they take a notable part of the time: of that of the clock, and of
// what all callers spend in calls. Many callers that wait for one stall lose little each.
func slowCallsNoticed(c *facts.Case) bool {
	l := c.Ledger
	return !few(l) || slowest(l) >= facts.HealthyMaxNs ||
		float64(l.Users.ExcessNs) >= facts.MinShare*float64(max(c.EndNs-c.StartNs, callTimeNs(c))) ||
		slices.ContainsFunc(c.Nodes, caller.SlowForCaller)
}

// findings are those of all causes in their order, with their shares of the time that callers lost. rare is the first
// where nobody notices any of them, nil where somebody does.
func findings(c *facts.Case, made []changes.Change, step func(nth, of int)) (_ []cause.Finding, _ LostTime,
	rare *finding,
) {
	all := explain(c, step)
	for i := range all {
		rate(&all[i], c.Ledger.Latency.Calls)
	}
	shares, fs := share(c, all)
	kept := reported(c, fs)
	if len(kept) == 0 && len(fs) > 0 {
		rare = &fs[0]
	}
	found := []cause.Finding{}
	for _, f := range kept {
		f.Confidence = calibration.Confidence(f.Grade, Few(f.Finding), Main(f.Finding)) * (1 - f.Missed)
		found = append(found, f.Finding)
	}
	cite(c, made, found)
	blame(c.WithEarlier(), found)
	steps(found)
	return found, lostTable(shares, kept), rare
}

// rarely says of slow calls that are too few to be a pattern what most of them have in common.
func rarely(c *facts.Case, f *finding) string {
	if f == nil || slowCalls(c.Ledger) == 0 || f.Grade == law.Eliminated || f.inCalls < f.got ||
		f.ClaimedShare < degree.Most {
		return ""
	}
	return " Most of the time lost in these: " + f.Title + "."
}

// callTimeNs is the time of all calls, slow or not, in nanoseconds.
func callTimeNs(c *facts.Case) int64 {
	ns := 0.0
	for _, n := range c.Nodes {
		ns += connection.CallTimeNs(n)
	}
	return int64(ns)
}

// blindSpots are all that was not seen, as far as it matters.
func blindSpots(c *facts.Case) []recording.BlindSpot {
	out := append([]recording.BlindSpot{}, reportedSpots(c.Rec)...)
	out = append(out, unseenSpots(c.Rec)...)
	for _, n := range c.Nodes {
		if b, ok := unixSpot(n); ok {
			out = append(out, b)
		}
		if b, ok := namelessSpot(n); ok {
			out = append(out, b)
		}
		if c.Ledger.MixesOwnCalls(n.Address) {
			out = append(out, recording.OwnCallsOfProxy(n.Address))
		}
	}
	if b, ok := droppedSpot(c.Rec); ok {
		out = append(out, b)
	}
	if b, ok := endSpot(c.Rec); ok {
		out = append(out, b)
	}
	return withRights(out)
}

// withRights gives all spots of a user's missing rights one command: that which gives all of them.
func withRights(spots []recording.BlindSpot) []recording.BlindSpot {
	rights := map[string]string{} // by the command without them
	for _, b := range spots {
		if command, rules, ok := recording.Grant(b.Enable); ok {
			for rule := range strings.FieldsSeq(rules) {
				if !slices.Contains(strings.Fields(rights[command]), rule) {
					rights[command] += " " + rule
				}
			}
		}
	}
	for i, b := range spots {
		if command, _, ok := recording.Grant(b.Enable); ok {
			spots[i].Enable = command + rights[command]
		}
	}
	return spots
}

// costOfWatch is what the watch itself took of the server and of this host.
func costOfWatch(c *facts.Case) []cause.Evidence {
	out := []cause.Evidence{}
	for _, n := range c.Nodes {
		if s := n.Series(series.OwnCommandsTime); len(s) > 0 {
			ns := n.GrowthNs(series.OwnCommandsTime)
			if ns == 0 {
				continue // a proxy has no such counters
			}
			out = append(out, cause.Evidence{
				Source: recording.SourceServer, Value: ns, Unit: "ns",
				Text: fmt.Sprintf("slowpath's queries took %.2f ms of server time on %s (%.3f %%); %s", ns/1e6,
					n.Address, ns/1e7/c.Seconds(), costOfCalls(n, c.Seconds())),
			})
		}
	}
	out = append(out, otherObservers(c)...)
	out = append(out, costOfHooks(c)...)
	if s := c.Rec.Of(series.OwnCPU, ""); len(s) > 0 {
		ns, _ := s.Last()
		out = append(out, cause.Evidence{
			Source: recording.SourceHost, Value: ns, Unit: "ns",
			Text: fmt.Sprintf("slowpath itself used %.2f %% of one core", ns/1e7/c.Seconds()),
		})
	}
	return out
}

// costOfCalls is what slowpath's calls and connections took of a server. The kernel counts the main thread's time as a
// whole: of a server with little else to do that is a bound which is near.
func costOfCalls(n *facts.Node, seconds float64) string {
	ran := n.GrowthNs(series.MainRun)
	if share := ran / 1e9 / seconds; mainthread.HostWatched(n) && share < degree.Part {
		return fmt.Sprintf("with its calls and connections, and all else, the main thread ran %.2f ms (%.3f %%)",
			ran/1e6, share*100)
	}
	return "what its calls and connections took is not measured"
}

// otherObservers are others that watched as well. They cost the servers something, too, and are no users.
func otherObservers(c *facts.Case) (out []cause.Evidence) {
	for _, n := range c.Nodes {
		if k := caller.OtherObservers(n); k > 0 {
			out = append(out, cause.Evidence{
				Source: recording.SourceServer, Value: float64(k), Unit: "observers",
				Text: fmt.Sprintf("%d more slowpath watched %s as well", k, n.Address),
			})
		}
	}
	calls, _ := c.Rec.Of(series.TapCallsObserver, "").Last()
	if calls > 0 {
		out = append(out, cause.Evidence{
			Source: recording.SourceTap, Value: calls, Unit: "calls",
			Text: fmt.Sprintf("%.0f calls of other slowpaths, or of this one through a proxy, count neither as users' "+
				"nor as load", calls),
		})
	}
	return out
}

// costOfHooks is what the programs in the kernel took of this host, where the kernel measured it.
func costOfHooks(c *facts.Case) []cause.Evidence {
	last := func(of series.Name) float64 { return facts.LastValue(c.Rec.Of(of, "")) }
	runs, ns, of := last(series.TapHookRuns), last(series.TapHookTime), last(series.TapHookMeasured)
	if runs == 0 || of == 0 {
		return nil
	}
	return []cause.Evidence{{
		Source: recording.SourceTap, Value: ns, Unit: "ns",
		Text: fmt.Sprintf("the hooks in the kernel took %s %% of one core in the first %s: %.0f runs of %.0f ns",
			format.Rounded(100*ns/of), format.Brief(int64(of)), runs, ns/runs),
	}}
}
