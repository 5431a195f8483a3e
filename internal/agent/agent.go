// Package agent is slowpath while nobody looks: it watches servers without end, keeps the last minutes in a ring, and
// makes an incident of the time in which calls are slow or fail, with its recording and its verdict.
package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/agent/ring"
	"slowpath/internal/clock"
	"slowpath/internal/live"
	"slowpath/internal/live/accounting"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// Options of an agent. Settings may be changed later, by Reload.
type Options struct {
	Settings
	Data    string // the directory of all that is kept
	Version string // of this program
	Log     *Log
	Files   host.FS // of this host; the real one when nil
	// Find looks for the servers of this host; nil: none are found.
	Find func() (addresses []string, err error)
	// Beside, if set, receives all rows, too.
	Beside recording.ProfileSink
	// Changed, if set, is told of each incident that begins, has a verdict, or cannot have one. It must not block.
	Changed func(incidents.Incident)
	// Judge is judge.Verdict; nil: that.
	Judge func(context.Context, judge.Options) ([]byte, error)
}

// Agent is one that was opened.
type Agent struct {
	o        Options
	clock    *clock.Real
	log      *Log
	dir      *directory
	ring     *ring.Ring
	store    *incidents.Store
	history  *incidents.History
	view     *live.View
	recent   *accounting.Recent
	since    time.Time
	servers  servers
	budget   *budget
	episodes *episodes
	own      disturbance
	missed   float64 // calls, up to the end of the last minute that was kept

	settings atomic.Pointer[Settings]
	changed  chan struct{} // the watch has to begin again
	// watchedFrom is the Unix second since which it watches; 0: it does not.
	watchedFrom atomic.Int64
	ticked      atomic.Int64 // Unix second of the last look at the triggers

	mu       sync.Mutex
	problems map[string]string // by what they are about
}

// Open opens the directory of an agent, with what an earlier one left there. Its errors match ErrInUse, or are of the
// files.
func Open(o Options) (*Agent, error) {
	if o.Judge == nil {
		o.Judge = judge.Verdict
	}
	if o.Changed == nil {
		o.Changed = func(incidents.Incident) {}
	}
	if o.Files == nil {
		o.Files = host.Root{}
	}
	dir, err := openDirectory(o.Data)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, clock: clock.New(), log: o.Log, dir: dir, since: time.Now(), changed: make(chan struct{}, 1),
		problems: map[string]string{},
	}
	a.settings.Store(&o.Settings)
	if err := a.openFiles(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	slow, _ := time.ParseDuration(o.Watch.Slow) // "auto" is 0
	a.view = live.New(live.Options{Keep: viewKeep, Slow: slow, Clock: a.clock})
	a.recent = accounting.New(a.view, a.clock)
	a.budget = newBudget(a)
	a.episodes = newEpisodes(a)
	return a, nil
}

// viewKeep is how long live seconds stay in memory: what the triggers compare with, and a page shows.
const viewKeep = 15 * time.Minute

func (a *Agent) openFiles() (err error) {
	s := a.settings.Load()
	in, err := a.dir.folder.Sub(ringName)
	if err != nil {
		return err
	}
	a.ring, err = ring.Open(ring.Options{
		Folder: in, Keep: s.RingKeep, MaxBytes: s.RingBytes, Clock: a.clock,
		Log: func(line string) { a.log.Warn("ring: %s", line) },
	})
	if err != nil {
		return err
	}
	if in, err = a.dir.folder.Sub(incidentsName); err != nil {
		return err
	}
	if a.store, err = incidents.Open(in, s.Incidents); err != nil {
		return err
	}
	for _, note := range a.store.Notes() {
		a.log.Warn("incidents: %s", note)
	}
	a.history, err = incidents.OpenHistory(a.dir.folder, historyName, s.HistoryKeep, s.HistoryBytes)
	if err != nil {
		return err
	}
	damaged := a.store.Damaged()
	if note := a.history.Note(); note != "" {
		damaged = append(damaged, note)
	}
	for _, sentence := range damaged {
		a.problem(sentence, sentence) // until it is started again
	}
	return nil
}

// Close closes the files, and gives the directory free.
func (a *Agent) Close() error {
	var errs []error
	if a.ring != nil {
		errs = append(errs, a.ring.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	if a.history != nil {
		errs = append(errs, a.history.Close())
	}
	return errors.Join(append(errs, a.dir.close())...)
}

// View is what the watch sees now.
func (a *Agent) View() *live.View { return a.view }

// Store has the incidents.
func (a *Agent) Store() *incidents.Store { return a.store }

// SlowCalls are the slow calls in the ring that ended in a time, by the threshold of now, and how many more there were.
func (a *Agent) SlowCalls(ctx context.Context, from, to time.Time) (calls []live.SlowCall, missed uint64, err error) {
	view := live.New(live.Options{Keep: to.Sub(from) + time.Minute, Slow: a.view.Threshold(), Clock: at(to.UnixNano())})
	err = a.ring.Calls(ctx, from, to, view.Call)
	calls, missed = view.SlowSince(0)
	return calls, missed, err
}

// at is a clock that stands still.
type at int64

func (t at) Now() int64 { return int64(t) }

// KeptSince is the begin of what the ring has.
func (a *Agent) KeptSince() time.Time { return a.ring.Status().From }

// Sent is the directory of what says up to where all was sent to others. Who gets it closes it.
func (a *Agent) Sent() (*folder.Folder, error) { return a.dir.folder.Sub(sentName) }

// Temp is for files of the moment, such as recordings that are compared. It is emptied when an agent begins.
func (a *Agent) Temp() *folder.Folder { return a.dir.temp }

// InIncident reports whether an incident is watched: its recording is not complete.
func (a *Agent) InIncident() bool { return a.episodes.busy() }

// History has the minutes of days.
func (a *Agent) History() *incidents.History { return a.history }

// Run watches until the context ends, and then closes the agent. An incident that is watched then gets its verdict.
func (a *Agent) Run(ctx context.Context) error {
	s := a.settings.Load()
	a.log.Say("slowpath %s watches %s; data in %s", a.o.Version, whom(s), a.dir.folder.Path())
	var all sync.WaitGroup
	all.Go(func() { a.watch(ctx) })
	all.Go(func() { a.judgeSeconds(ctx) })
	all.Go(func() { a.keepMinutes(ctx) })
	all.Go(func() { a.keepEntries(ctx) })
	all.Go(func() { a.recent.Run(ctx) })
	all.Go(func() { a.budget.keep(ctx) })
	all.Go(func() { feedWatchdog(ctx, a.alive) })
	tellSystemd(systemdReady)
	<-ctx.Done()
	tellSystemd(systemdStopping)
	a.log.Say("stopping")
	all.Wait()
	a.checkFiles() // the last verdicts
	err := a.Close()
	if err != nil {
		return fmt.Errorf("closing the files in %s: %w", a.dir.folder.Path(), err)
	}
	a.log.Say("stopped; the ring keeps the last %v", s.RingKeep)
	return nil
}

func whom(s *Settings) string {
	if len(s.Named) == 0 {
		return "the servers of this host"
	}
	return fmt.Sprintf("%q", s.Named)
}

// alive reports whether the triggers were looked at lately: a watch that hangs must not look healthy.
func (a *Agent) alive() bool {
	const late = 30 // seconds
	return time.Now().Unix()-a.ticked.Load() < late
}

// Reload takes new settings, which have been checked. It returns the flags that take a restart of the agent.
func (a *Agent) Reload(s Settings) (needRestart []string) {
	old := a.settings.Load()
	needRestart = old.needRestart(&s)
	slices.Sort(needRestart)
	s.Watch.Slow = old.Watch.Slow
	a.settings.Store(&s)
	a.episodes.configure(&s)
	a.restartWatch()
	return needRestart
}

// restartWatch has the watch begin again, with other servers or options.
func (a *Agent) restartWatch() {
	select {
	case a.changed <- struct{}{}:
	default: // it will
	}
}

// problem keeps a sentence about something that is wrong, for health; an empty one says that it is over. It is logged
// when it is new.
func (a *Agent) problem(about, sentence string) {
	a.mu.Lock()
	before := a.problems[about]
	if sentence == "" {
		delete(a.problems, about)
	} else {
		a.problems[about] = sentence
	}
	a.mu.Unlock()
	switch {
	case sentence == before:
	case sentence == "":
		a.log.Say("over: %s", before)
	default:
		a.log.Warn("%s", sentence)
	}
}

// Counts has a process count as a part of the agent, in what it costs and may cost: its door.
func (a *Agent) Counts(pid int) { a.budget.other.Store(int64(pid)) }

// Problem is for problems that are found outside, such as in the configuration.
func (a *Agent) Problem(about, sentence string) { a.problem(about, sentence) }

// Save writes a window of the ring as a recording of a name that must not exist.
func (a *Agent) Save(ctx context.Context, from, to time.Time, in *folder.Folder, name string) error {
	return a.ring.Save(ctx, from, to, in, name)
}

// Compare holds two recordings against each other, and gives slowpath.compare/v1.
func (a *Agent) Compare(ctx context.Context, before, after string) ([]byte, error) {
	return judge.Compare(ctx, before, after)
}

// Mark writes a mark into the ring, so that findings can cite it.
func (a *Agent) Mark(m incidents.Mark) {
	a.ring.Event(recording.Event{
		TimeNs: m.Time.UnixNano(), Source: recording.SourceWatch, Subject: recording.SubjectMachine,
		Kind: recording.KindMark, Detail: recording.Detail(recording.MarkDetail{Text: m.Text}),
	})
}

// Trigger begins an incident that somebody asks for, and gives its id; one that is watched already is that one.
func (a *Agent) Trigger(reason string) (id string, err error) { return a.episodes.ask(reason) }
