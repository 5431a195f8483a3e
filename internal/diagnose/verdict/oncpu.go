package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// OnCPU is what a process used the CPU for while calls were slow, compared with the rest of the watch, by samples of
// the kernel (--profile cpu).
type OnCPU struct {
	Subject string `json:"subject"`
	Name    string `json:"name"` // "redis-server[4711]"
	Node    string `json:"node,omitempty"`
	Slow    Side   `json:"slow"` // while calls of this server or client were slow; of any process, where it is neither
	Rest    Side   `json:"rest"`
	// Functions with a larger share while calls were slow, beyond chance; where there are none, those with the largest
	// share.
	Functions []OnCPUFunction `json:"functions"`
	Differs   bool            `json:"differs"`
}

// Side is a part of the watch.
type Side struct {
	Ns      int64 `json:"ns"`     // its length
	CPUNs   int64 `json:"cpu_ns"` // CPU time of its threads meanwhile
	Samples int64 `json:"samples"`
}

// OnCPUFunction is a function with its callees; shares are of the samples of each side.
type OnCPUFunction struct {
	Name string  `json:"name"`
	Slow float64 `json:"slow_share"`
	Rest float64 `json:"rest_share"`
}

// Bounds of what is listed.
const (
	// chanceErrors is how many standard errors two shares must differ by.
	// Bound: statistics, three: of a hundred functions one is beyond by chance in one of eight watches.
	chanceErrors = 3
)

// onCPU compares both sides for each process that was sampled.
func onCPU(rec *recording.Recording, l *account.Ledger) (out []OnCPU) {
	var subjects []string
	for _, p := range rec.Profiles {
		s, _ := rec.SnapshotOf(recording.SourceProfile, p.Subject, recording.SnapshotApplication)
		if what, _ := recording.BodyOf[recording.Profiled](s); what.LoopOnly {
			continue // nobody asked for it
		}
		if p.Kind == recording.ProfileCPUClock && !slices.Contains(subjects, p.Subject) {
			subjects = append(subjects, p.Subject)
		}
	}
	slices.Sort(subjects)
	for _, subject := range subjects {
		o, slow := sampledIn(rec, l, subject)
		in := map[string]*seenIn{}
		o.each(rec, slow, func(s stacks.Stack, isSlow bool, samples, cpu int) {
			side := &o.Rest
			if isSlow {
				side = &o.Slow
			}
			side.Samples += s.Values[samples]
			side.CPUNs += s.Values[cpu]
			count(in, s, isSlow, s.Values[samples])
		})
		o.choose(in)
		out = append(out, o)
	}
	return out
}

// SlowAndRest are the samples of one process while calls were slow, and its other samples; without times.
func SlowAndRest(rec *recording.Recording, subject string) (slow, rest *stacks.Profile) {
	types := []stacks.Type{{Name: "samples", Unit: "count"}, {Name: "cpu", Unit: "nanoseconds"}}
	slow, rest = &stacks.Profile{Types: types}, &stacks.Profile{Types: types}
	o, times := sampledIn(rec, account.Build(rec), subject)
	o.each(rec, times, func(s stacks.Stack, isSlow bool, samples, cpu int) {
		to := rest
		if isSlow {
			to = slow
		}
		to.Stacks = append(to.Stacks, stacks.Stack{Frames: s.Frames, Values: []int64{s.Values[samples], s.Values[cpu]}})
	})
	return slow, rest
}

// sampledIn says which process the samples of a subject are of, and when its calls were slow.
func sampledIn(rec *recording.Recording, l *account.Ledger, subject string) (OnCPU, facts.Spans) {
	what := recording.Profiled{Name: subject}
	if s, ok := rec.SnapshotOf(recording.SourceProfile, subject, recording.SnapshotApplication); ok {
		_ = json.Unmarshal([]byte(s.Body), &what) // a damaged snapshot is as good as none
	}
	o := OnCPU{Subject: subject, Name: what.Name, Node: what.Node, Functions: []OnCPUFunction{}}
	if what.PID != 0 {
		o.Name = fmt.Sprintf("%s[%d]", what.Name, what.PID)
	}
	slow := slowTimes(l, o)
	from, to := rec.Window()
	o.Slow.Ns = slow.TotalNs()
	o.Rest.Ns = max(0, to-from-o.Slow.Ns)
	return o, slow
}

// each visits the samples of the process.
func (o OnCPU) each(rec *recording.Recording, slow facts.Spans, take func(s stacks.Stack, isSlow bool, samples,
	cpu int),
) {
	for _, body := range rec.Profiles {
		if body.Kind != recording.ProfileCPUClock || body.Subject != o.Subject {
			continue
		}
		p, err := stacks.Read(body.Pprof)
		if err != nil {
			continue // the profile was cut short
		}
		samples, cpu := p.Column("samples"), p.Column("cpu")
		if samples < 0 || cpu < 0 {
			continue
		}
		for _, s := range p.Stacks {
			i, found := slices.BinarySearchFunc(slow, s.TimeNs,
				func(s facts.Span, at int64) int { return cmp.Compare(s.FromNs, at) })
			take(s, found || i > 0 && s.TimeNs < slow[i-1].ToNs, samples, cpu)
		}
	}
}

// slowTimes are when calls of the process were slow, in order and disjoint.
func slowTimes(l *account.Ledger, o OnCPU) facts.Spans {
	var out facts.Spans
	ofIt := func(a account.Account) bool {
		return o.Node != "" && a.Call.Node == o.Node || o.Node == "" && a.Call.Client == o.Name
	}
	any := o.Node == "" && !slices.ContainsFunc(l.Slow, ofIt) // neither a server nor a client that was seen
	for _, a := range l.Slow {
		if any || ofIt(a) {
			out = append(out, facts.Span{FromNs: a.Call.IntendedNs, ToNs: a.Call.EndNs})
		}
	}
	return facts.MergeSpans(out)
}

// seenIn is a function with its samples on both sides. depth is the deepest frame at which it was seen.
type seenIn struct {
	name       string
	slow, rest int64
	depth      int
}

// count adds a stack to its functions, each once.
func count(in map[string]*seenIn, s stacks.Stack, isSlow bool, samples int64) {
	seen := map[string]bool{}
	for depth, f := range s.Frames {
		if seen[f] {
			continue
		}
		seen[f] = true
		t := in[f]
		if t == nil {
			t = &seenIn{name: f}
			in[f] = t
		}
		t.depth = max(t.depth, depth)
		if isSlow {
			t.slow += samples
		} else {
			t.rest += samples
		}
	}
}

// choose lists functions: those with a larger share while calls were slow, else those with the largest share.
func (o *OnCPU) choose(in map[string]*seenIn) {
	all := o.Slow.Samples + o.Rest.Samples
	if all < degree.Many {
		return
	}
	more := func(t *seenIn) float64 { return shareOf(t.slow, o.Slow.Samples) - shareOf(t.rest, o.Rest.Samples) }
	stands := func(t *seenIn) bool { return t.named() && more(t) >= max(degree.Part, chance(t, o)) }
	most := func(t *seenIn) float64 { return shareOf(t.slow+t.rest, all) }
	// main is in all samples
	score, wanted := most,
		func(t *seenIn) bool { return t.named() && most(t) >= degree.Part && most(t) < degree.NearlyAll }
	if o.Slow.Samples >= degree.Many && o.Rest.Samples >= degree.Many {
		for _, t := range in {
			if stands(t) {
				score, wanted, o.Differs = more, stands, true
				break
			}
		}
	}
	var list []*seenIn
	for _, t := range in {
		if wanted(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *seenIn) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(b.depth, a.depth), cmp.Compare(a.name, b.name))
	})
	for _, t := range apart(list, o.Differs) {
		o.Functions = append(o.Functions, OnCPUFunction{
			t.name, shareOf(t.slow, o.Slow.Samples),
			shareOf(t.rest, o.Rest.Samples),
		})
	}
}

func shareOf(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }

// named: a function, not the thread, and not a file without function names.
func (t *seenIn) named() bool { return t.depth > 0 && t.name != "?" && !strings.HasPrefix(t.name, "[") }

// apart keeps one of several functions in the same samples: one calls the other, and the innermost of the program says
// most. Where the slow side differs from the rest, only its samples count: callers were on the CPU in the rest for
// other reasons.
func apart(list []*seenIn, differs bool) (kept []*seenIn) {
	for _, t := range list {
		same := func(k *seenIn) bool {
			return degree.Many*max(k.slow-t.slow, t.slow-k.slow) <= k.slow && (differs || degree.Many*max(k.rest-t.rest,
				t.rest-k.rest) <= k.rest)
		}
		i := slices.IndexFunc(kept, same)
		switch {
		case i < 0 && len(kept) < degree.Listed:
			kept = append(kept, t)
		case i >= 0 && t.depth > kept[i].depth && !strings.HasSuffix(t.name, "_[k]"):
			kept[i] = t
		}
	}
	return kept
}

// chance is three standard errors of the difference of two shares, so that of some hundred functions hardly one is
// listed by chance.
func chance(t *seenIn, o *OnCPU) float64 {
	p := float64(t.slow+t.rest) / float64(o.Slow.Samples+o.Rest.Samples)
	return chanceErrors * math.Sqrt(p*(1-p)*(1/float64(max(o.Slow.Samples, 1))+1/float64(max(o.Rest.Samples, 1))))
}
