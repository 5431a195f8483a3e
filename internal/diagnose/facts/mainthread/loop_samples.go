package mainthread

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// loopSample is what the main thread did at one time. functions are those that say what, the outermost first.
type loopSample struct {
	stacks.Meaning
	functions []string
	called    string // by the first of them, where it is known what that means
	timeNs    int64
	cpuNs     int64
}

// ownWork reports whether it was work of the event loop's own, known or not, and neither a command nor serving.
func (s loopSample) ownWork() bool {
	return s.State == stacks.Loop || s.ID == "" && s.functions[0] != ""
}

// readLoopSamples reads the samples of the main thread, in order of time.
func readLoopSamples(n *facts.Node) (out []loopSample) {
	if n.Ledger.IsProxy(n.Address) {
		return nil // the table is of servers
	}
	table, known := stacks.Server(), map[string]loopSample{} // by the stack: few of many are different
	for _, body := range n.Rec.Profiles {
		if body.Kind != recording.ProfileCPUClock {
			continue
		}
		s, _ := n.Rec.SnapshotOf(recording.SourceProfile, body.Subject, recording.SnapshotApplication)
		what, ok := recording.BodyOf[recording.Profiled](s)
		if !ok || what.Node != n.Address || what.Loop == 0 {
			continue
		}
		p, err := stacks.Read(body.Pprof)
		if err != nil {
			continue // the profile was cut short
		}
		cpu := p.Column("cpu")
		for _, s := range p.Stacks {
			if s.TID != int64(what.Loop) || cpu < 0 {
				continue
			}
			stack := strings.Join(s.Frames, "\n")
			sample, is := known[stack]
			if !is {
				sample = newLoopSample(table, s.Frames)
				known[stack] = sample
			}
			sample.timeNs, sample.cpuNs = s.TimeNs, s.Values[cpu]
			out = append(out, sample)
		}
	}
	if messages, known := sent(n, table, out); known {
		for i := range out {
			if out[i].ID == stacks.Written {
				out[i].Meaning = messages
			}
		}
	}
	slices.SortFunc(out, func(a, b loopSample) int { return cmp.Compare(a.timeNs, b.timeNs) })
	return out
}

// newLoopSample is what a stack says; without a time.
func newLoopSample(table stacks.Table, stack []string) (out loopSample) {
	frames := serverFrames(stack)
	if m, known := table.Of(frames); known {
		out.Meaning, out.functions = m, []string{m.Frame(frames)}
		if i := slices.Index(frames, out.functions[0]); i+1 < len(frames) {
			out.called = frames[i+1]
		}
		return out
	}
	in := slices.Index(frames, eventLoop)
	if in < 0 { // another program, or the tap's hooks hide the callers: any function may be in all of its stacks
		out.ID, out.functions = notInLoop, []string{""}
		return out
	}
	for _, f := range frames[in:] {
		if !skeleton[f] && f != "?" && !strings.HasPrefix(f, "[") {
			out.functions = append(out.functions, f)
		}
	}
	if len(out.functions) == 0 {
		out.functions = []string{""}
	}
	return out
}

// eventLoop is the function that is the event loop of Redis and Valkey, and notInLoop the meaning of stacks without it
// of which nothing else is known.
const (
	eventLoop = "aeMain"
	notInLoop = "?"
)

// skeleton are functions in the event loop that are around whatever it does.
var skeleton = facts.WordSet("aeMain aeProcessEvents processTimeEvents beforeSleep afterSleep serverCron " +
	"connSocketEventHandler connUnixEventHandler tlsEventHandler")

// serverFrames are the functions of a stack in user space as they are in the source, without the thread's name and what
// the compiler has added to names.
func serverFrames(frames []string) (out []string) {
	for i, f := range frames {
		if i == 0 || strings.HasSuffix(f, "_[k]") {
			continue
		}
		if !strings.HasPrefix(f, "[") {
			f, _, _ = strings.Cut(f, ".")
		}
		out = append(out, f)
	}
	return out
}

// loopInstead reports whether the stacks of the main thread say that a command which the server has no record of was
// not what it did: they were mostly in work of its own.
func loopInstead(n *facts.Node, s account.Suspect) bool {
	if s.Source != recording.SourceTap || s.Record != "" {
		return false
	}
	own, all := loopSamplesIn(n, facts.Span{FromNs: s.FromNs, ToNs: s.ToNs})
	return 2*own > all
}

// LoopInstead reports whether the main thread was mostly, beyond chance, in work of its own within stretches of time in
// which it served requests.
func LoopInstead(n *facts.Node, spans facts.Spans) bool {
	own, t := 0, LoopTime{}
	for _, s := range spans {
		o, all := loopSamplesIn(n, s)
		own, t.Samples = own+o, t.Samples+all
	}
	return t.Mostly(own)
}

// loopSamplesIn counts the samples of the main thread in a stretch of time, and those of them in work of its own.
func loopSamplesIn(n *facts.Node, span facts.Span) (own, all int) {
	samples := facts.Once(n, "samples of the loop", readLoopSamples)
	at, _ := slices.BinarySearchFunc(samples, span.FromNs,
		func(s loopSample, t int64) int { return cmp.Compare(s.timeNs, t) })
	for ; at < len(samples) && samples[at].timeNs < span.ToNs; at++ {
		if all++; samples[at].ownWork() {
			own++
		}
	}
	return own, all
}
