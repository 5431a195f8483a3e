//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/step"
	"slowpath/internal/load/experiment"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// poolTimeout is how long a call waits for a connection in all libraries: some have no limit by default, and redis-py
// would not wait at all.
const poolTimeout = 10 * time.Second

// SweepPools makes the loads of the rows in rounds, and fills them in. The order of the rows turns with each round, so
// that a machine that gets slower or faster meanwhile changes all rows alike. What keeps a row from being measured is
// in the row. When ctx ends, the rounds so far are the result.
func SweepPools(ctx context.Context, o Options, s *PoolSweep) (err error) {
	r := &runner{Options: o, settings: s.Settings.matrix()}
	open := &openConnections{}
	defer func() {
		open.close()
		err = errors.Join(err, r.leave(ctx))
		s.conclude()
	}()
	for round := 1; round <= s.Settings.Rounds; round++ {
		for i := range s.Rows {
			if round%2 == 0 {
				i = len(s.Rows) - 1 - i
			}
			row := &s.Rows[i]
			if row.Empty != "" {
				continue
			}
			name := fmt.Sprintf("round %d of %d: %s", round, s.Settings.Rounds, *row)
			step.Say(ctx, "%s", name)
			ctx := step.Of(ctx, "%s", name)
			c, err := r.poolLoad(ctx, s, row, open)
			if ctx.Err() != nil {
				s.Interrupted = true
				return nil
			}
			row.enter(round, c, open.connections, err)
			if err != nil {
				o.Done(name + ": " + err.Error())
			} else {
				o.Done(name + ": " + c.figures())
			}
		}
	}
	return nil
}

// enter is the outcome of a round.
func (r *PoolRow) enter(round int, c *Cell, connections int, err error) {
	switch {
	case err == nil:
		r.add(round, *c, connections)
	case errors.Is(err, clients.ErrTool), errors.Is(err, clients.ErrRegistry), errors.Is(err, clients.ErrUnsupported):
		r.Empty = err.Error() // it would be so in each round
	default:
		r.Failures = append(r.Failures, experiment.Failure{Round: round, Error: err.Error()})
	}
}

// poolLoad makes one load of a row.
func (r *runner) poolLoad(ctx context.Context, s *PoolSweep, row *PoolRow, open *openConnections) (*Cell, error) {
	c := &Cell{Client: row.Client, Server: s.Server, Topology: s.Topology}
	p, err := r.pair(ctx, c)
	if err != nil {
		return nil, err
	}
	defer p.close(ctx)
	if err := open.watch(ctx, p.addrs); err != nil {
		return nil, err
	}
	p.pool, open.connections = open, 0
	p.options = row.options(p.options)
	return c, p.measure(ctx)
}

// options are those of the matrix with the pool of the row.
func (r *PoolRow) options(o clients.Options) clients.Options {
	o.Workers, o.PoolSize, o.MaxIdle = r.Callers, r.Pool, r.Pool
	o.PoolTimeout, o.OwnConnections = poolTimeout, r.Mode == PerThread
	return o
}

// openConnections counts the connections that the servers have of the client.
type openConnections struct {
	sessions    []*session.Session
	before      int // connections that are not the client's
	connections int // of the client that runs, in the middle of the counted time; 0: not known
}

// watch connects to the servers, and counts the connections before there is a client. It does so once.
func (n *openConnections) watch(ctx context.Context, addrs []string) error {
	if n.sessions != nil {
		return nil
	}
	for _, addr := range addrs {
		t, err := target.Parse(addr)
		if err != nil {
			return err
		}
		s, _, err := session.Open(ctx, t, "slowpath-matrix")
		if err != nil {
			n.close()
			return err
		}
		n.sessions = append(n.sessions, s)
	}
	before, err := n.clients(ctx)
	if err != nil {
		n.close()
		return err
	}
	n.before = before
	return nil
}

// follow counts at the begin of the counted time and in its middle, and keeps the later count. One that came after the
// end is not kept: a busy machine is late by more than a short load takes, and the client may have closed some by then.
func (n *openConnections) follow(ctx context.Context, run *clients.Process, begin time.Time, counted time.Duration) {
	for _, at := range []time.Time{begin, begin.Add(counted / 2)} {
		if !wait(ctx, run, time.Until(at)) {
			return
		}
		if now := n.count(ctx); now > 0 && time.Now().Before(begin.Add(counted)) {
			n.connections = now
		}
	}
}

// count is how many connections the client has now; 0: a server did not say.
func (n *openConnections) count(ctx context.Context) int {
	now, err := n.clients(ctx)
	if err != nil {
		return 0
	}
	return max(0, now-n.before)
}

// clients is connected_clients of all servers together.
func (n *openConnections) clients(ctx context.Context) (all int, err error) {
	for _, s := range n.sessions {
		v, err := s.Do(ctx, "INFO", "clients")
		if err != nil {
			return 0, fmt.Errorf("counting connections: %w", err)
		}
		have, ok := server.ParseInfo(string(v.Str)).Numbers["connected_clients"]
		if !ok {
			return 0, errors.New("counting connections: INFO has no connected_clients")
		}
		all += int(have)
	}
	return all, nil
}

func (n *openConnections) close() {
	for _, s := range n.sessions {
		s.Close()
	}
	n.sessions = nil
}
