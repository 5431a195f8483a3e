//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Doctor asks for the verdict on a target, by the arguments of slowpath doctor.
type Doctor func(ctx context.Context, args []string) (verdict.Diagnosis, error)

// Options of a run, or of a sweep of pools, which has no plan, no doctor and no file.
type Options struct {
	Plan    Plan
	Fleet   *fleet.Fleet
	Servers *servers.Cache
	Clients *clients.Cache
	Doctor  Doctor
	Log     io.Writer         // steps of obtaining programs
	Keep    string            // file that has the cells after each of them; empty: none
	Done    func(text string) // told what came of each cell, or of each load of a sweep
}

// Run measures the cells that are still to be measured, and puts them into it. What keeps a single cell from being
// measured is in the cell. Run ends early, with the error of the context and without the cell that was under way, when
// the context ends.
func Run(ctx context.Context, o Options, m *Matrix) (err error) {
	todo := o.Plan.Todo(m)
	r := &runner{Options: o, settings: m.Settings}
	defer func() { err = errors.Join(err, r.leave(ctx)) }()
	for i, c := range todo {
		name := fmt.Sprintf("[%d/%d] %s", i+1, len(todo), c)
		step.Say(ctx, "%s", name)
		ctx := step.Of(ctx, "%s", name)
		start := time.Now()
		err := r.cell(ctx, &c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.Seconds = time.Since(start).Seconds()
		if err != nil {
			c.Empty, c.Again = err.Error(), again(err)
		}
		m.Put(c)
		o.Done(name + ": " + c.outcome())
		if o.Keep == "" {
			continue
		}
		if err := m.Save(o.Keep); err != nil {
			return err
		}
	}
	return nil
}

// errSilent says that no call of a client succeeded: it cannot speak to that server.
var errSilent = errors.New("no call succeeded")

// again says whether another run may fare better: what a library cannot do stays so.
func again(err error) bool {
	return !errors.Is(err, errSilent) && !errors.Is(err, clients.ErrUnsupported)
}

// runner keeps the servers from one cell to the next where both want the same.
type runner struct {
	Options
	settings Settings
	stage    *stage
}

// stage is servers that run.
type stage struct {
	server, topology string
	addrs            []string
	err              error // they could not be started
	stop             func(context.Context) error
}

// leaveWithin bounds the end of servers: each has two seconds from SIGTERM to SIGKILL.
const leaveWithin = 30 * time.Second

// leave stops the servers, also after Ctrl-C.
func (r *runner) leave(ctx context.Context) error {
	s := r.stage
	r.stage = nil
	if s == nil || s.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	return s.stop(ctx)
}

// enter starts the servers of a cell, unless they run.
func (r *runner) enter(ctx context.Context, c Cell) (*stage, error) {
	if s := r.stage; s != nil && s.server == c.Server && s.topology == c.Topology {
		return s, s.err
	}
	if err := r.leave(ctx); err != nil {
		return nil, err
	}
	s := &stage{server: c.Server, topology: c.Topology}
	s.err = r.start(ctx, s)
	r.stage = s
	return s, s.err
}

func (r *runner) start(ctx context.Context, s *stage) error {
	bin, err := r.Servers.Get(ctx, servers.Name(s.server), r.Log)
	if err != nil {
		return err
	}
	if s.topology == Standalone {
		i, err := r.Fleet.Start(ctx, bin, fleet.Spec{})
		if err != nil {
			return err
		}
		s.addrs, s.stop = []string{i.Addr}, i.Stop
		return nil
	}
	c, err := r.Fleet.StartCluster(ctx, bin, r.settings.Masters, r.settings.Replicas, fleet.Spec{})
	if err != nil {
		return err
	}
	s.addrs, s.stop = c.Addrs(), c.Stop
	return nil
}

// cell measures one.
func (r *runner) cell(ctx context.Context, c *Cell) error {
	p, err := r.pair(ctx, c)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	if err := p.measure(ctx); err != nil {
		return err
	}
	if r.settings.Watch == 0 {
		return nil
	}
	if err := p.diagnose(ctx); err != nil {
		c.Unwatched = err.Error()
	}
	return nil
}

// pair makes a client ready to be started against the servers of its cell.
func (r *runner) pair(ctx context.Context, c *Cell) (*pair, error) {
	about, err := lookup(clients.Name(c.Client))
	if err != nil {
		return nil, err
	}
	p := &pair{runner: r, cell: c, about: about}
	p.options = r.settings.options(c.Topology)
	if about.Language == "JavaScript" { // its usual client has one connection, and a pool is a client of another kind
		p.options.PoolSize = 0
	}
	switch {
	case !about.Has(p.options.Mode):
		return nil, fmt.Errorf("%w: %s has %v", clients.ErrUnsupported, c.Client, about.Modes)
	case r.settings.HTTP && !about.HTTP:
		return nil, fmt.Errorf("%w: %s has no HTTP service", clients.ErrUnsupported, c.Client)
	}
	if p.program, err = r.Clients.Get(ctx, about.Name, r.Log); err != nil {
		return nil, err
	}
	s, err := r.enter(ctx, *c)
	if err != nil {
		return nil, err
	}
	p.addrs = s.addrs
	p.options.Addresses = s.addrs
	if err := p.makeDir(); err != nil {
		p.close(ctx)
		return nil, err
	}
	return p, nil
}
