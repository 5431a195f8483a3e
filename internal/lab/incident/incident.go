// Package incident makes faults with real means on real servers, each with its known cause: the truth that verdicts are
// graded against. One file per incident.
package incident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// HealthyCause is the truth of an incident that is none.
const HealthyCause = "healthy"

// Incident is a fault that the lab can make.
type Incident struct {
	ID    string // name on the command line; equal to the cause where there is one incident of it
	Cause string // the truth: id of a cause, or HealthyCause
	Title string
	Watch time.Duration // how long doctor watches; 0: DefaultWatch
	Args  []string      // more arguments for doctor
	// Server is the version that it needs, where it is of one: what goes wrong is between a client and what it does not
	// know.
	Server servers.Name
	// Make makes the fault and returns when it is under way. What it starts through the Lab ends with the Lab.
	Make func(ctx context.Context, l *Lab) (Scene, error)
}

// DefaultWatch is how long doctor watches an incident.
const DefaultWatch = 8 * time.Second

// Scene is where doctor is to look.
type Scene struct {
	Target string   // HOST:PORT or URL
	Args   []string // more arguments for doctor, that are known only now
}

// ErrCannot says that this machine cannot make an incident, and what would be needed.
var ErrCannot = errors.New("this machine cannot make the incident")

// Lab is what incidents are made with. Everything it starts is in the registry before it exists, so that the next lab
// removes it should this one be killed.
type Lab struct {
	Fleet    *fleet.Fleet
	Registry *fleet.Registry
	Cache    *servers.Cache
	Server   servers.Name // version that incidents run against
	Log      io.Writer
	cleanup  []func(context.Context) error
}

// New opens a lab over the default registry and cache.
func New(server servers.Name, log io.Writer) (*Lab, error) {
	reg, err := fleet.OpenRegistry("")
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(reg)
	if err != nil {
		return nil, err
	}
	cache, err := servers.OpenCache("")
	if err != nil {
		return nil, err
	}
	return &Lab{Fleet: f, Registry: reg, Cache: cache, Server: server, Log: log}, nil
}

// Close undoes everything, the last first.
func (l *Lab) Close(ctx context.Context) error {
	var errs []error
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, l.cleanup[i](ctx))
	}
	l.cleanup = nil
	return errors.Join(errs...)
}

// Defer adds a step of undoing.
func (l *Lab) Defer(f func(context.Context) error) { l.cleanup = append(l.cleanup, f) }

// Start runs one server for the incident. A Spec without Config lines has no persistence.
func (l *Lab) Start(ctx context.Context, spec fleet.Spec) (*fleet.Instance, error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, err
	}
	i, err := l.Fleet.Start(ctx, bin, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(i.Stop)
	return i, nil
}

// Load runs traffic until the incident ends.
func (l *Lab) Load(ctx context.Context, s traffic.Spec) *traffic.Load {
	load := traffic.Start(context.WithoutCancel(ctx), s)
	l.Defer(func(context.Context) error {
		load.Stop()
		if err := load.Err(); err != nil {
			fmt.Fprintf(l.Log, "load: %d replies, %d failures, last: %v\n", load.Sent(), load.Failed(), err)
		}
		return nil
	})
	return load
}

// Every repeats an action from now until the incident ends; its errors go to the log.
func (l *Lab) Every(ctx context.Context, gap time.Duration, action func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for {
			if err := action(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintf(l.Log, "incident: %v\n", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	l.Defer(func(context.Context) error { cancel(); <-done; return nil })
}

// needRoot says whether faults that need root can be made.
func needRoot(what string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: %s needs root", ErrCannot, what)
	}
	return nil
}
