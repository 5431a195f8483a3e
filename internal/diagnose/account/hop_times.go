package account

import (
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// HopTimes is how long calls took from a hop on, in nanoseconds, and what slow calls lost there.
type HopTimes struct {
	Hop
	// Source is recording.SourceTap: all calls at the hop's end of its connections; or recording.SourceProbe: GETs of
	// slowpath itself. Empty: there were none.
	Source       string
	Calls        int
	P50Ns, P99Ns int64
	// AddedP50Ns and AddedP99Ns are how much more that is than at the next hop.
	AddedP50Ns, AddedP99Ns int64
	// LostNs is the time of slow calls that passed at the hop, and on the way to it, beyond what it adds to any call.
	LostNs float64
	// Actor, State and Culprit are those of most of LostNs.
	Actor, State, Culprit string
}

// HopTimes are those of a chain of hops, by the tap where it saw enough of them for a median.
func (l *Ledger) HopTimes(rec *recording.Recording, chain []Hop) []HopTimes {
	out := make([]HopTimes, len(chain))
	for _, source := range []string{recording.SourceTap, recording.SourceProbe} {
		for i, h := range chain {
			out[i] = l.timesAt(rec, h, source)
		}
		if !slices.ContainsFunc(out, func(h HopTimes) bool { return h.Calls < degree.Many }) {
			break
		}
	}
	for i := range out[:len(out)-1] {
		h, next := &out[i], out[i+1]
		h.AddedP50Ns, h.AddedP99Ns = max(h.P50Ns-next.P50Ns, 0), max(h.P99Ns-next.P99Ns, 0)
	}
	last := &out[len(out)-1]
	last.AddedP50Ns, last.AddedP99Ns = last.P50Ns, last.P99Ns
	l.loseAtHops(out)
	return out
}

// timesAt are the times of all calls of a source at a hop. A proxy answers PING itself, so that of slowpath's own calls
// only GETs go all the way.
func (l *Ledger) timesAt(rec *recording.Recording, h Hop, source string) HopTimes {
	t := HopTimes{Hop: h, Source: source}
	if source == recording.SourceTap {
		if of := l.served[h.Node]; of != nil {
			t.Calls, t.P50Ns, t.P99Ns = int(of.TotalCount()), of.ValueAtQuantile(50), of.ValueAtQuantile(99)
		}
		return t
	}
	var ns []int64
	for _, c := range rec.Calls {
		if c.Source == source && c.Node == h.Node && c.Op == "GET" && c.Conn == "kept" && c.Error == "" {
			ns = append(ns, feltNs(rec, c))
		}
	}
	if t.Calls = len(ns); len(ns) > 0 {
		slices.Sort(ns)
		t.P50Ns, t.P99Ns = stats.Quantile(ns, 0.5), stats.Quantile(ns, 0.99)
	}
	return t
}

// loseAtHops adds up what slow calls lost at each hop: of users, where any of theirs was slow. Where only a part of the
// slow calls is recorded, it is not known what a proxy waited for.
func (l *Ledger) loseAtHops(chain []HopTimes) {
	type state struct{ actor, state, culprit string }
	thinned := l.Users.Recorded < l.Users.Slow
	users := slices.ContainsFunc(l.Slow, func(a Account) bool {
		return !a.IsPart() && a.Call.Source == recording.SourceTap
	})
	at := map[string]int{}
	lost := make([]map[state]float64, len(chain))
	for i, h := range chain {
		at[h.Node], lost[i] = i, map[state]float64{}
	}
	for i, a := range l.Slow {
		_, in := at[a.Call.Node]
		if a.IsPart() || !in || users && a.Call.Source != recording.SourceTap {
			continue
		}
		here := make([]map[state]int64, len(chain))
		for _, s := range l.Whole(i) {
			k, ok := at[s.Node]
			if ofCaller := s.Actor == Client || s.Actor == App; ok && !ofCaller && !(thinned && isPassedOn(s.Segment)) {
				if here[k] == nil {
					here[k] = map[state]int64{}
				}
				here[k][state{s.Actor, s.State, s.Culprit}] += s.Ns()
			}
		}
		for k, states := range here {
			sum := int64(0)
			for _, ns := range states {
				sum += ns
			}
			beyond := float64(max(sum-chain[k].AddedP50Ns, 0)) / float64(max(sum, 1))
			for s, ns := range states {
				lost[k][s] += float64(ns) * beyond * a.Weight
			}
		}
	}
	for i := range chain {
		h, most := &chain[i], 0.0
		byState := map[state]float64{} // without culprits
		for s, ns := range lost[i] {
			h.LostNs += ns
			byState[state{actor: s.actor, state: s.state}] += ns
		}
		for s, ns := range byState {
			if ns > most || ns == most && s.actor+s.state < h.Actor+h.State {
				most, h.Actor, h.State = ns, s.actor, s.state
			}
		}
		most = 0
		for s, ns := range lost[i] {
			if s.actor == h.Actor && s.state == h.State && (ns > most || ns == most && s.culprit < h.Culprit) {
				most, h.Culprit = ns, s.culprit
			}
		}
	}
}
