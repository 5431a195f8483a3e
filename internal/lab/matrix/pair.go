//go:build linux

package matrix

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/step"
)

// pair is a client and the servers of its cell.
type pair struct {
	*runner
	cell    *Cell
	about   clients.Client
	program clients.Program
	options clients.Options // of all its runs; without a duration
	addrs   []string
	dir     string
	entries []fleet.Entry
	pool    *openConnections // of a sweep of pools
}

// How long a client may take to its first reply, and to its end after the time of its calls: a JVM starts and compiles,
// connections are closed.
const (
	readyWithin = 30 * time.Second
	endWithin   = 10 * time.Second
)

// judgeWithin is how long doctor may take beside the watch; it takes seconds, some ten where the machine is crowded.
const judgeWithin = 2 * time.Minute

// lookup knows nothing of somebody's own program: it says itself what it cannot do.
func lookup(name clients.Name) (clients.Client, error) {
	if strings.Contains(string(name), "/") {
		return clients.Client{
			Name: name, HTTP: true, Pool: true, Own: true,
			Modes: []protocol.Mode{protocol.Standalone, protocol.Cluster},
		}, nil
	}
	return clients.Lookup(name)
}

// options are the same for all clients: nine reads for each write of a value of one byte. The pool has a connection for
// each worker, so that the figures are those of the library and not of the size of its default pool.
func (s Settings) options(topology string) clients.Options {
	o := clients.Options{
		Mode: protocol.Mode(topology), Workers: s.Workers, Keys: s.Keys, Warmup: s.Warmup,
		PoolSize: s.Workers, MaxIdle: s.Workers,
		Commands: []clients.Command{
			{Args: []string{"GET", "slowpath:{n}"}, Weight: 9},
			{Args: []string{"SET", "slowpath:{n}", "x"}},
		},
	}
	if s.HTTP {
		o.Workers, o.Listen = 0, anyPort
	}
	return o
}

const anyPort = "127.0.0.1:0"

// dirs counts those that this process has made.
var dirs atomic.Int32

// makeDir makes the directory of the client's work, by which the next lab finds the client should this one be killed.
func (p *pair) makeDir() error {
	root, err := filepath.EvalSymlinks(os.TempDir()) // /proc/PID/cwd, by which it is found, has none either
	if err != nil {
		return err
	}
	dir := filepath.Join(root, fmt.Sprintf("slowpath-matrix-%d-%d", os.Getpid(), dirs.Add(1)))
	for _, kind := range []fleet.Kind{fleet.KindDir, fleet.KindProcess} {
		e, err := p.Fleet.Registry.Add(fleet.Entry{Kind: kind, Path: dir})
		if err != nil {
			return err
		}
		p.entries = append(p.entries, e)
	}
	p.dir = dir
	return os.Mkdir(dir, 0o700)
}

// close removes the directory. What cannot be removed stays in the registry, for the next lab.
func (p *pair) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := p.Fleet.Registry.Release(ctx, p.entries...); err != nil {
		fmt.Fprintf(p.Log, "%s: %v\n", p.cell, err)
	}
}

// watchedRate is the calls per second of a load that doctor watches: a share of those that the pair reached, and at
// least one of each caller. Callers that never pause fill the CPUs of any machine, which limited_by says, and make one
// call after the other as a loop over keys does: doctor would name these in place of what the library does.
func (p *pair) watchedRate() float64 {
	return max(p.cell.RequestsPerSecond*p.settings.WatchShare, float64(p.settings.Workers))
}

// diagnose starts the client again and lets doctor watch it. What was measured is not of this run: a watch and profiles
// have their cost.
func (p *pair) diagnose(ctx context.Context) error {
	o := p.options
	o.Rate = p.watchedRate()
	if p.about.Pprof {
		o.Listen = anyPort
	}
	run, err := p.program.Start(p.dir, o)
	if err != nil {
		return err
	}
	defer func() { _, _ = run.End(endWithin) }() // what it measured is not wanted
	if err := ready(ctx, run); err != nil {
		return err
	}
	if p.settings.HTTP {
		ask, stop := context.WithCancel(ctx)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			q := p.requests(time.Hour)
			q.Rate = p.watchedRate()
			_, _ = q.Make(ask, run.Addr()) // what it sees is not counted; doctor ends it
		}()
		defer func() { stop(); <-asked }()
	}
	if !wait(ctx, run, p.settings.Warmup) {
		return fmt.Errorf("the client %s ended before doctor watched it", p.cell.Client)
	}
	return p.ask(ctx, run)
}

// ask takes doctor's verdict on a client that makes calls.
func (p *pair) ask(ctx context.Context, run *clients.Process) error {
	args := []string{p.addrs[0], "--for", p.settings.Watch.String(), "--record", filepath.Join(p.dir, "watch.slowpath")}
	switch {
	case p.about.Pprof:
		args = append(args, "--pprof", run.Addr())
	case p.about.Language == "Java":
		args = append(args, "--pprof", strconv.Itoa(run.PID))
	}
	step.Say(ctx, "doctor watches for %v, and judges", p.settings.Watch)
	watch, cancel := context.WithTimeout(ctx, p.settings.Watch+judgeWithin)
	defer cancel()
	d, err := p.Doctor(watch, args)
	switch {
	case err != nil && watch.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("doctor had no verdict after %v", p.settings.Watch+judgeWithin)
	case err != nil:
		return err
	}
	c := p.cell
	c.Finding = d.Verdict
	for i, f := range d.Findings {
		if i == 0 {
			c.Finding, c.Confidence, c.ExcessShare = f.Cause, f.Confidence, f.ExcessShare
			continue
		}
		c.Others = append(c.Others, f.Cause)
	}
	return nil
}

// ready waits for the first call, or for the service to listen.
func ready(ctx context.Context, run *clients.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return run.AwaitReady(ctx)
}

// wait reports whether the client still runs after d.
func wait(ctx context.Context, run *clients.Process, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-run.Exited():
	case <-ctx.Done():
	}
	return false
}
