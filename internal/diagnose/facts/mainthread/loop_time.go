package mainthread

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// LoopTime is what the main thread of a server did while slow calls waited and neither a command nor a job of the
// server that it recorded is known to be the reason, by samples of its stack.
type LoopTime struct {
	// Ns is how long that was, in nanoseconds, however many calls waited at a time.
	Ns int64
	// Samples and RestSamples are those of the thread in these times, and in the rest of the watch.
	Samples, RestSamples int
	// CPUNs is the CPU time of the thread in these times, by its samples, in nanoseconds.
	CPUNs int64
	// Parts are what it did, that with the most samples first.
	Parts []LoopPart
}

// LoopPart is one thing that the thread did. The meaning of functions that are not known has no ID.
type LoopPart struct {
	stacks.Meaning
	// Function is the one that most of its samples have, and Called what most of these were in from there, [NAME] for
	// a function without a name of that file; empty where it called none.
	Function, Called string
	// Samples and RestSamples are those of LoopTime in it.
	Samples, RestSamples int
	// CPUNs is its part of LoopTime.CPUNs.
	CPUNs     int64
	functions map[string]int // by the samples in the times that are asked about
	called    map[[2]string]int
}

// Mostly reports whether so many samples while calls waited have something that it is the reason, beyond chance.
func (t LoopTime) Mostly(samples int) bool {
	return hosts.Mostly(samples, t.Samples)
}

// Nameless is the share of the samples while calls waited whose functions have no names, where it is the larger part;
// else 0.
func (t LoopTime) Nameless() float64 {
	for _, p := range t.Parts {
		if p.ID == "" && p.Function == "" && t.Mostly(p.Samples) {
			return float64(p.Samples) / float64(t.Samples)
		}
	}
	return 0
}

// LoopTimeOf is that of this node; without samples where its main thread was not sampled.
func LoopTimeOf(n *facts.Node) LoopTime { return facts.Once(n, "time of the loop", findLoopTime) }

func findLoopTime(n *facts.Node) LoopTime {
	var doubted facts.Spans
	for _, a := range n.Ledger.Slow {
		if a.Call.Node != n.Address {
			continue
		}
		for _, s := range a.Segments {
			if loopMayHaveDone(n, s) {
				doubted = append(doubted, facts.Span{FromNs: s.FromNs, ToNs: s.ToNs})
			}
		}
	}
	if len(doubted) == 0 {
		return LoopTime{}
	}
	samples := facts.Once(n, "samples of the loop", readLoopSamples)
	doubted = facts.MergeSpans(doubted)
	t := LoopTime{Ns: doubted.TotalNs()}
	parts := map[string]*LoopPart{}
	for _, s := range samples {
		p := parts[s.ID]
		if p == nil {
			p = &LoopPart{Meaning: s.Meaning, functions: map[string]int{}, called: map[[2]string]int{}}
			parts[s.ID] = p
		}
		if doubted.OverlapNs(s.timeNs, s.timeNs+1) == 0 {
			t.RestSamples, p.RestSamples = t.RestSamples+1, p.RestSamples+1
			continue
		}
		t.Samples, p.Samples = t.Samples+1, p.Samples+1
		t.CPUNs, p.CPUNs = t.CPUNs+s.cpuNs, p.CPUNs+s.cpuNs
		for _, f := range s.functions {
			p.functions[f]++
		}
		p.called[[2]string{s.functions[0], s.called}]++
	}
	for _, p := range parts {
		p.Function = p.mostIn(samples)
		p.Called = p.mostCalled()
		t.Parts = append(t.Parts, *p)
	}
	slices.SortFunc(t.Parts, func(a, b LoopPart) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.ID, b.ID))
	})
	return t
}

// mostIn is the function that most samples of the part in question have; of several the outermost.
func (p *LoopPart) mostIn(samples []loopSample) (best string) {
	for _, s := range samples {
		if s.ID != p.ID {
			continue
		}
		for _, f := range s.functions { // the outermost first
			if p.functions[f] > p.functions[best] {
				best = f
			}
		}
	}
	return best
}

// mostCalled is what most of the samples of its function were in from there.
func (p *LoopPart) mostCalled() (best string) {
	most := 0
	for k, n := range p.called {
		if k[0] == p.Function && (n > most || n == most && k[1] < best) {
			best, most = k[1], n
		}
	}
	return best
}

// loopMayHaveDone reports whether slow calls waited for the server in a segment, and what it did is not known, or is
// known only by what it had read last.
func loopMayHaveDone(n *facts.Node, s account.Segment) bool {
	if facts.IsUnexplainedWait(s) {
		return true
	}
	if s.Suspect < 0 || s.Actor != account.Server || s.State != account.Busy && s.State != account.Exec {
		return false
	}
	p := n.Ledger.Suspects[s.Suspect]
	switch p.Kind {
	case account.KindDefrag:
		return true
	case account.KindLoop, account.KindWatch, account.KindPipeline, account.KindCommand:
		return p.Source == recording.SourceTap && p.Record == ""
	}
	return false
}

// ClaimOfLoop claims the time of slow calls in which the thread did what matches: of the time in which it is known to
// have run, by the share of its samples; of other waits only as much as it ran in them.
func ClaimOfLoop(n *facts.Node, match func(LoopPart) bool) facts.Claim {
	t := LoopTimeOf(n)
	var cpu int64
	for _, p := range t.Parts {
		if match(p) {
			cpu += p.CPUNs
		}
	}
	if cpu == 0 {
		return facts.Claim{}
	}
	ran, waited := float64(cpu)/float64(t.CPUNs), float64(cpu)/float64(max(t.CPUNs, t.Ns))
	return n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			switch {
			case !loopMayHaveDone(n, s):
			case s.Actor == account.Server && (s.State == account.Busy || s.State == account.Exec):
				times.Add(s, int64(float64(s.Ns())*ran))
			default:
				times.Add(s, int64(float64(s.Ns())*waited))
			}
		}
		return times
	})
}
