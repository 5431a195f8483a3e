package random

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/scenario"
)

// caller makes operations by a schedule and times each by its own clock.
type caller interface {
	// change lets the caller go on with other options.
	change(o clients.Options) error
	// stop ends the caller, and returns its operations by when they were due.
	stop() (clients.Summary, error)
}

// starter starts one kind of callers.
type starter struct {
	starts func(clients.Name) bool
	start  func(ctx context.Context, s *stage, spec scenario.ClientSpec) (caller, error)
}

// starters are the kinds of callers. The first that can start a program does.
var starters = []starter{
	{func(n clients.Name) bool { return slices.Contains(clients.Known(), n) }, startProcess},
	{func(n clients.Name) bool { return slices.Contains(scenario.OwnKinds, n) }, startOwn},
	{func(n clients.Name) bool { return slices.Contains(sites, n) }, startSite},
}

// startCaller starts a caller and waits for its first result.
func (s *stage) startCaller(ctx context.Context, spec scenario.ClientSpec) (caller, error) {
	for _, kind := range starters {
		if kind.starts(spec.Program) {
			return kind.start(ctx, s, spec)
		}
	}
	return nil, fmt.Errorf("nothing starts callers named %q", spec.Program)
}

// process is a client program of the lab.
type process struct{ *clients.Process }

func startProcess(ctx context.Context, s *stage, spec scenario.ClientSpec) (caller, error) {
	p, err := s.lab.ClientProcess(ctx, spec)
	return process{p}, err
}

func (p process) change(o clients.Options) error { return p.Change(o) }

// endOfCaller is how long a program may take to end: a JVM has to write its summary.
const endOfCaller = 5 * time.Second

func (p process) stop() (clients.Summary, error) { return p.Stop(endOfCaller) }

// own are callers in this process. What is wrong with them is no option of a library.
type own struct{ *scenario.OwnCallers }

func startOwn(ctx context.Context, s *stage, spec scenario.ClientSpec) (caller, error) {
	c, err := s.lab.StartOwnCallers(ctx, spec.Program, spec.Options)
	s.Own = c
	return own{c}, err
}

func (o own) change(clients.Options) error { return nil }

func (o own) stop() (clients.Summary, error) { return o.Stop(), nil }

// site is a web application. An operation is a page, which its visitors in this process time: from when one asks for it
// until it is there.
type site struct{ *apps.Running }

// sites are the web applications of the lab.
var sites = func() (names []clients.Name) {
	for _, a := range apps.Catalogue() {
		if a.Web {
			names = append(names, clients.Name(a.Name))
		}
	}
	return names
}()

// warmUpOfSite is how long a site works before the first trial: pools fill, and JVMs compile what runs often.
const warmUpOfSite = 4 * time.Second

func startSite(ctx context.Context, s *stage, spec scenario.ClientSpec) (caller, error) {
	r, err := s.lab.App(ctx, scenario.AppSpec{
		Name: apps.Name(spec.Program), Cgroup: spec.Cgroup, CPU: spec.CPU,
		Options: apps.Options{Addr: spec.Options.Addresses[0], Rate: spec.Options.Rate, Slice: spec.Options.Slice},
	})
	if err != nil {
		return nil, err
	}
	return site{r}, wait(ctx, warmUpOfSite)
}

func (s site) change(clients.Options) error {
	return errors.New("a site has no options of a client library")
}

func (s site) stop() (clients.Summary, error) {
	if _, err := s.Stop(); errors.Is(err, apps.ErrEnded) { // others may be slow to end
		return clients.Summary{}, err
	}
	start, measured := s.Measured()
	return clients.Summary{StartUnix: start.UnixNano(), Slices: measured}, nil
}
