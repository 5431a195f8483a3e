package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// Application is a program that was profiled: its goroutines or threads by what they were doing in each profile, as far
// as the frames of known client libraries show it.
type Application struct {
	recording.Profiled
	// Snapshots are the profiles of all goroutines or threads, in order of time.
	Snapshots []StackSnapshot
	// Delays are what goroutines were held up, by the kind of the profile (mutex, block), the longest first.
	Delays map[string][]Delay
}

// StackSnapshot is one profile of all goroutines or threads.
type StackSnapshot struct {
	// Calls is the number of those that were in calls of known libraries, without background work of the libraries.
	Calls     int64
	byMeaning map[string]*stackCount
}

// stackCount is how many goroutines or threads had stacks of one meaning.
type stackCount struct {
	stacks.Meaning
	count int64
	// the library's outermost frame in one of them, which shows its version
	libraryFrame string
}

// Delay is what goroutines were held up in stacks of one meaning during the watch; an empty meaning is all stacks that
// are not known.
type Delay struct {
	stacks.Meaning
	// Ns is the time in nanoseconds that they were held up.
	Ns int64
	// Count is how often they were held up.
	Count int64
}

// Applications are the programs that were profiled. A profile that does not parse was cut short, and is left out.
func Applications(c *facts.Case) []*Application {
	return facts.Once(c, "applications", findApplications)
}

func findApplications(c *facts.Case) []*Application {
	rec := c.Rec
	table := tableOf(rec)
	bySubject := map[string]*Application{}
	var out []*Application
	for _, p := range rec.Profiles {
		if recording.SampledOnHost(p.Kind) {
			continue // of what has the CPU, not of what waits
		}
		a := bySubject[p.Subject]
		if a == nil {
			a = &Application{
				Delays:   map[string][]Delay{},
				Profiled: recording.Profiled{Name: p.Subject},
			}
			if s, ok := rec.SnapshotOf(recording.SourceProfile, p.Subject, "application"); ok {
				_ = json.Unmarshal([]byte(s.Body), &a.Profiled) // a damaged snapshot is as good as none
			}
			bySubject[p.Subject] = a
			out = append(out, a)
		}
		read, err := stacks.Read(p.Pprof)
		if err != nil {
			continue
		}
		switch p.Kind {
		case recording.ProfileGoroutine, recording.ProfileThreads:
			a.Snapshots = append(a.Snapshots, stackSnapshotOf(table, read))
		case recording.ProfileMutex, recording.ProfileBlock:
			a.Delays[p.Kind] = delaysOf(table, read)
		}
	}
	return out
}

// tableOf is the user's own table of frames, followed by the built-in one.
func tableOf(rec *recording.Recording) stacks.Table {
	var own stacks.Table
	if s, ok := rec.SnapshotOf(recording.SourceProfile, recording.SubjectSelf, recording.SnapshotFrames); ok {
		own, _ = stacks.Parse(s.Body) // it was checked when it was given
	}
	return append(own, stacks.Builtin()...)
}

func stackSnapshotOf(table stacks.Table, p *stacks.Profile) StackSnapshot {
	m := StackSnapshot{byMeaning: map[string]*stackCount{}}
	column := max(p.Column("goroutine"), p.Column("threads"), 0)
	for _, s := range p.Stacks {
		count := s.Values[column]
		what, known := table.Of(s.Frames)
		if !known || what.State == stacks.Idle {
			continue
		}
		if what.Library != "" {
			m.Calls += count
		}
		if m.byMeaning[what.ID] == nil {
			m.byMeaning[what.ID] = &stackCount{Meaning: what, libraryFrame: what.Frame(s.Frames)}
		}
		m.byMeaning[what.ID].count += count
	}
	return m
}

func delaysOf(table stacks.Table, p *stacks.Profile) []Delay {
	ns, count := p.Column("delay"), p.Column("contentions")
	if ns < 0 || count < 0 {
		return nil
	}
	by := map[string]*Delay{}
	for _, s := range p.Stacks {
		what, _ := table.Of(s.Frames)
		if by[what.ID] == nil {
			by[what.ID] = &Delay{Meaning: what}
		}
		by[what.ID].Ns += s.Values[ns]
		by[what.ID].Count += s.Values[count]
	}
	var out []Delay
	for _, d := range by {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Delay) int { return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.ID, b.ID)) })
	return out
}

// ThreadWait is what goroutines or threads of an application waited for, over the snapshots of the watch.
type ThreadWait struct {
	// App is the application.
	App *Application
	// Meaning is that of the stacks which most of them had.
	Meaning stacks.Meaning
	// LibraryFrame is the library's outermost frame in one of those stacks, which shows its version.
	LibraryFrame string
	// Snapshots is the number of snapshots in which any waited.
	Snapshots int
	// Count is how many goroutines or threads waited in the median snapshot.
	Count int64
	// Calls is how many of them were in calls in the median snapshot.
	Calls int64
	// Share is Count as a share of Calls.
	Share float64
	// Mean is how many waited, on average over all snapshots.
	Mean float64
}

// Lasting says that some waited in most snapshots, and not only when the watch began.
func (w ThreadWait) Lasting() bool { return w.Count > 0 && 2*w.Snapshots > len(w.App.Snapshots) }

// Waits sums up the stacks whose meaning matches; ok is false where there were none.
func (a *Application) Waits(match func(stacks.Meaning) bool) (w ThreadWait, ok bool) {
	type moment struct{ waiting, calls int64 }
	var all []moment
	var most int64
	w.App = a
	for _, m := range a.Snapshots {
		one := moment{calls: m.Calls}
		for _, what := range m.byMeaning {
			if !match(what.Meaning) {
				continue
			}
			one.waiting += what.count
			if what.count > most || what.count == most && what.ID < w.Meaning.ID {
				most, w.Meaning, w.LibraryFrame = what.count, what.Meaning, what.libraryFrame
			}
		}
		if one.waiting > 0 {
			w.Snapshots++
		}
		all = append(all, one)
		w.Mean += float64(one.waiting) / float64(len(a.Snapshots))
	}
	if w.Snapshots == 0 {
		return w, false
	}
	share := func(m moment) float64 { return float64(m.waiting) / float64(max(m.calls, m.waiting, 1)) }
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(share(a), share(b)) })
	mid := all[len(all)/2]
	w.Count, w.Calls, w.Share = mid.waiting, max(mid.calls, mid.waiting), share(mid)
	return w, true
}

// WorstWait is the wait of the application in which the largest share of the calls waits.
func WorstWait(c *facts.Case, match func(stacks.Meaning) bool) (worst ThreadWait, ok bool) {
	for _, a := range Applications(c) {
		if w, found := a.Waits(match); found && w.Lasting() && (!ok || w.Share > worst.Share) {
			worst, ok = w, true
		}
	}
	return worst, ok
}

// DisplayName is the application's name in messages: "shop[1234]".
func (a *Application) DisplayName() string {
	switch {
	case a.PID != 0:
		return fmt.Sprintf("%s[%d]", a.Name, a.PID)
	case a.Address != "" && a.Address != a.Name:
		return a.Name + " (" + a.Address + ")"
	}
	return a.Name
}

// ThreadNoun is what its runtime calls its threads: "goroutines" or "threads".
func (a *Application) ThreadNoun() string {
	if a.Runtime == "jvm" {
		return "threads"
	}
	return "goroutines"
}

// IsPoolWait reports whether a stack waits for a connection of a pool.
func IsPoolWait(m stacks.Meaning) bool { return m.State == stacks.PoolWait }
