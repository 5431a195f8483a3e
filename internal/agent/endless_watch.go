package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// Pauses before a watch begins again.
const (
	firstPause = 2 * time.Second
	mostPause  = time.Minute
	steady     = 5 * time.Minute // a watch that ran so long was no failure
	// settle is what a watch that begins again gives an incident to end first, at most.
	settleEvery = time.Second
)

// watch watches until ctx ends: it begins again when the servers or the options are others, and after errors.
func (a *Agent) watch(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; {
		a.look(time.Now())
		began := time.Now()
		err := a.watchOnce(ctx)
		a.watchedFrom.Store(0)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = firstPause
			continue // asked for
		}
		if time.Since(began) >= steady {
			pause = firstPause
		}
		a.problem("watch", fmt.Sprintf("nothing is watched: %v; it is tried again", err))
		wait(ctx, pause)
		pause = min(2*pause, mostPause)
	}
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// look lists the servers that should be watched. It reports whether they are others than before.
func (a *Agent) look(now time.Time) (changed bool) {
	s := a.settings.Load()
	if len(s.Named) > 0 {
		targets, err := s.Targets(s.Named)
		if err != nil {
			a.problem("targets", err.Error())
			return false
		}
		a.problem("targets", "")
		return a.servers.look(addresses(targets), false, now)
	}
	if a.o.Find == nil {
		return false
	}
	found, err := a.o.Find()
	if err != nil {
		a.problem("targets", fmt.Sprintf("servers of this host cannot be found: %v", err))
		return false
	}
	a.problem("targets", "")
	return a.servers.look(found, true, now)
}

func addresses(targets []target.Target) (out []string) {
	for _, t := range targets {
		out = append(out, t.Addr())
	}
	return out
}

// targets are those of the servers that should be watched.
func (a *Agent) targets() ([]target.Target, error) {
	s := a.settings.Load()
	if len(s.Named) > 0 {
		return s.Targets(s.Named)
	}
	var found []string
	for _, o := range a.servers.all() {
		found = append(found, o.Address)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return s.Targets(found)
}

// watchOnce is one watch. Its error is nil where the next one is to begin at once.
func (a *Agent) watchOnce(ctx context.Context) error {
	targets, err := a.targets()
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no server was found on this host; name one: slowpath serve HOST:PORT")
	}
	errs := reach(ctx, targets)
	for i, t := range targets {
		if errs[i] != nil {
			a.servers.set(t.Addr(), false, errs[i].Error())
		}
	}
	if !mayBegin(errs) {
		return errs[0]
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan struct{})
	go a.endWatch(ctx, cancel, asked)
	err = source.Run(ctx, a.watchOptions(targets), a.sink())
	for _, t := range targets {
		a.servers.set(t.Addr(), false, "")
	}
	select {
	case <-asked:
		return nil
	default:
	}
	if err == nil {
		err = fmt.Errorf("the watch ended by itself")
	}
	return err
}

// sink takes all rows of a watch.
func (a *Agent) sink() recording.ProfileSink {
	a.ring.Begin()
	sinks := []recording.ProfileSink{a.ring, a.view, a.recent.Sink()}
	if a.o.Beside != nil {
		sinks = append(sinks, a.o.Beside)
	}
	return live.Tee(sinks...)
}

func (a *Agent) watchOptions(targets []target.Target) source.Options {
	o := a.settings.Load().Watch
	o.Targets, o.Version, o.Clock, o.FS, o.For = targets, a.o.Version, a.clock, a.o.Files, 0
	a.budget.reduce(&o)
	left := map[string]bool{}
	o.Unreachable = func(t target.Target, err error) {
		left[t.Addr()] = true
		if a.servers.set(t.Addr(), false, err.Error()) {
			a.log.Warn("%s is left out for now: %v", t.Addr(), err)
		}
	}
	o.Started = func(nodes int) {
		a.watchedFrom.Store(a.clock.Now()/int64(time.Second) + 1)
		a.problem("watch", "")
		var watched []string
		for _, t := range targets {
			if !left[t.Addr()] {
				a.servers.set(t.Addr(), true, "")
				watched = append(watched, t.Addr())
			}
		}
		a.log.Say("watching %s", strings.Join(watched, ", "))
		if nodes > len(watched) {
			a.log.Say("and %d more nodes of their clusters", nodes-len(watched))
		}
		a.own.ends(a.clock.Now() / int64(time.Second))
		a.budget.watchBegins(nodes)
	}
	return o
}

// endWatch ends a watch when another one is to begin: other settings, other servers, or one that answers again. While
// an incident is watched it waits, so that its recording has no gap.
func (a *Agent) endWatch(ctx context.Context, cancel func(), asked chan struct{}) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	why := ""
	for why == "" {
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
			why = "other settings"
		case <-look.C:
			if a.watchedFrom.Load() > 0 && (a.look(time.Now()) || a.answersAgain(ctx)) {
				why = "other servers"
			}
		}
	}
	for a.episodes.busy() && ctx.Err() == nil {
		wait(ctx, settleEvery)
	}
	if ctx.Err() == nil {
		a.log.Say("the watch begins again: %s", why)
		a.own.begins(a.clock.Now() / int64(time.Second))
		close(asked)
		cancel()
	}
}

// answersAgain tries the servers that are not watched.
func (a *Agent) answersAgain(ctx context.Context) bool {
	names := a.servers.unwatched()
	if len(names) == 0 {
		return false
	}
	targets, err := a.settings.Load().Targets(names)
	if err != nil {
		return false
	}
	for i, err := range reach(ctx, targets) {
		if err == nil {
			return true
		}
		a.servers.set(targets[i].Addr(), false, err.Error())
	}
	return false
}
