package facts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// Application is a program whose goroutines or threads were looked at: what each was doing, moment by moment, as far as
// the frames of known client libraries tell.
type Application struct {
	recording.Profiled
	Subject   string
	Snapshots []StackSnapshot
	Delays    map[string][]Delay // by kind of profile: mutex, block; the longest first
}

// Moment is one reading of all goroutines or threads.
type StackSnapshot struct {
	TimeNs    int64
	Threads   int64
	Calls     int64 // in calls of known libraries, where one leaves out what works beside them
	byMeaning map[string]*stackCount
}

// Meant is how many goroutines or threads had stacks of one meaning.
type stackCount struct {
	stacks.Meaning
	count        int64
	libraryFrame string // the library's outermost frame in one of them, which tells its version
}

// Delay is what goroutines were held up in stacks of one meaning during the watch; an empty meaning is all that nothing
// is known of.
type Delay struct {
	stacks.Meaning
	Ns, Count int64
}

// applicationsOf reads all profiles of a recording. One that does not read was cut short, and is left out.
func applicationsOf(rec *recording.Recording) []*Application {
	table := tableOf(rec)
	bySubject := map[string]*Application{}
	var out []*Application
	for _, p := range rec.Profiles {
		if p.Kind == recording.ProfileCPUClock {
			continue // of what has the CPU, not of what waits
		}
		a := bySubject[p.Subject]
		if a == nil {
			a = &Application{
				Subject: p.Subject, Delays: map[string][]Delay{},
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
			a.Snapshots = append(a.Snapshots, stackSnapshotOf(table, p.TimeNs, read))
		case recording.ProfileMutex, recording.ProfileBlock:
			a.Delays[p.Kind] = delaysOf(table, read)
		}
	}
	return out
}

// tableOf is the user's own table of frames, and then that of this program.
func tableOf(rec *recording.Recording) stacks.Table {
	var own stacks.Table
	if s, ok := rec.SnapshotOf(recording.SourceProfile, recording.SubjectSelf, recording.SnapshotFrames); ok {
		own, _ = stacks.Parse(s.Body) // it was checked when it was given
	}
	return append(own, stacks.Builtin()...)
}

func stackSnapshotOf(table stacks.Table, at int64, p *stacks.Profile) StackSnapshot {
	m := StackSnapshot{TimeNs: at, byMeaning: map[string]*stackCount{}}
	column := max(p.Column("goroutine"), p.Column("threads"), 0)
	for _, s := range p.Stacks {
		count := s.Values[column]
		m.Threads += count
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

// Wait is what an application waited for, over the moments of the watch.
type ThreadWait struct {
	App          *Application
	Meaning      stacks.Meaning // of the one that most waited for
	LibraryFrame string
	Snapshots    int     // in which any waited
	Count        int64   // goroutines or threads in the median moment
	Calls        int64   // that were in calls then
	Share        float64 // of those
}

// Lasting says that it was so for most of the watch, and not when it began only.
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

// WorstWait is the one of all applications in which the largest part of the calls waits.
func (c *Case) WorstWait(match func(stacks.Meaning) bool) (worst ThreadWait, ok bool) {
	for _, a := range c.Applications {
		if w, found := a.Waits(match); found && w.Lasting() && (!ok || w.Share > worst.Share) {
			worst, ok = w, true
		}
	}
	return worst, ok
}

// Called is the name of an application for people.
func (a *Application) DisplayName() string {
	switch {
	case a.PID != 0:
		return fmt.Sprintf("%s[%d]", a.Name, a.PID)
	case a.Address != "" && a.Address != a.Name:
		return a.Name + " (" + a.Address + ")"
	}
	return a.Name
}

// Units are what a runtime calls its threads of work.
func (a *Application) ThreadNoun() string {
	if a.Runtime == "jvm" {
		return "threads"
	}
	return "goroutines"
}

func IsPoolWait(m stacks.Meaning) bool { return m.State == stacks.PoolWait }

// SameCallers says that every process that calls is one of the applications, by its name: comm has 15 characters of it.
func (c *Case) CallersAreAmong(apps []*Application) bool {
	known := map[string]bool{}
	for _, a := range apps {
		known[a.Name[:min(len(a.Name), 15)]] = true
	}
	seen := 0
	for _, n := range c.Nodes {
		for _, caller := range n.Callers() {
			if !known[caller.Comm] {
				return false
			}
			seen++
		}
	}
	return seen > 0
}
