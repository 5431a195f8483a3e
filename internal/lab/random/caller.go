package random

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/incident"
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
	start  func(ctx context.Context, s *stage, spec incident.ClientSpec) (caller, error)
}

// starters are the kinds of callers. The first that can start a program does.
var starters = []starter{
	{func(n clients.Name) bool { return slices.Contains(clients.Known(), n) }, startProcess},
	{func(n clients.Name) bool { return n == incident.SharedConn || n == incident.TwoWrites }, startOwn},
}

// startCaller starts a caller and waits for its first result.
func (s *stage) startCaller(ctx context.Context, spec incident.ClientSpec) (caller, error) {
	for _, kind := range starters {
		if kind.starts(spec.Program) {
			return kind.start(ctx, s, spec)
		}
	}
	return nil, fmt.Errorf("nothing starts callers named %q", spec.Program)
}

// process is a client program of the lab.
type process struct{ *clients.Process }

func startProcess(ctx context.Context, s *stage, spec incident.ClientSpec) (caller, error) {
	p, err := s.lab.ClientProcess(ctx, spec)
	return process{p}, err
}

func (p process) change(o clients.Options) error { return p.Change(o) }

// endOfCaller is how long a program may take to end: a JVM has to write its summary.
const endOfCaller = 5 * time.Second

func (p process) stop() (clients.Summary, error) { return p.Stop(endOfCaller) }

// own are callers in this process. What is wrong with them is no option of a library.
type own struct{ *incident.OwnCallers }

func startOwn(ctx context.Context, s *stage, spec incident.ClientSpec) (caller, error) {
	c, err := s.lab.StartOwnCallers(ctx, spec.Program, spec.Options)
	s.Own = c
	return own{c}, err
}

func (o own) change(clients.Options) error { return nil }

func (o own) stop() (clients.Summary, error) { return o.Stop(), nil }
