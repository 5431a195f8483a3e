package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/wire/resp"
)

const (
	multiKeys = 30_000
	batchKeys = 200_000
)

// oversizedPipeline runs a batch job and a small load: once per second, 12 connections each send 20 000 commands at
// once, and twice MGET asks for 30 000 keys. None of the pipelined commands is slow, so SLOWLOG has none of them. But
// each event loop iteration serves what it could read of all 12, 16 kB each, and every reply waits for those before it.
var oversizedPipeline = Scenario{
	ID:    "oversized-pipeline-or-multikey",
	Cause: "oversized-pipeline-or-multikey",
	Title: "pipelines of 20 000 commands on 12 connections, and MGET of 30 000 keys",
	Fixes: []string{"smaller-batches"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, batchKeys); err != nil {
			return Scene{}, err
		}
		pipelines, multi, others := l.timings("pipelines of 20 000"), l.timings("MGETs of 30 000 keys"),
			l.timings("other callers")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		job, keys := batchJob{connections: 12, commands: 20_000, piece: 20_000}, multiKeys
		if l.Fixed("smaller-batches") {
			job.piece, job.inTurn, keys = 100, true, 100
		}
		if err := l.startBatchJob(ctx, s.Addr, job, time.Second, pipelines); err != nil {
			return Scene{}, err
		}
		err = l.startCaller(ctx, net.Dialer{}, s.Addr, 500*time.Millisecond, func(c *caller) error {
			return multi.time(func() error {
				for range multiKeys / keys {
					args := []string{"MGET"}
					for range keys {
						args = append(args, batchKey())
					}
					if err := c.call(args...); err != nil {
						return err
					}
				}
				return nil
			})
		})
		return Scene{Target: s.Addr}, err
	},
}

func batchKey() string { return "fill:" + itoa(rand.IntN(batchKeys)) }

// batchJob sends a number of commands on each of its connections, in pipelines of so many as a piece: on all at the
// same time, or in turn.
type batchJob struct {
	connections, commands, piece int
	inTurn                       bool
}

// startBatchJob does a job about once per gap.
func (l *Lab) startBatchJob(ctx context.Context, addr string, job batchJob, gap time.Duration, took *timings) error {
	var conns []*caller
	for range job.connections {
		c, err := dialCaller(ctx, net.Dialer{}, addr)
		if err != nil {
			return err
		}
		l.Defer(func(context.Context) error { c.Close(); return nil })
		conns = append(conns, c)
	}
	l.startCallers(ctx, 1, gap, func(ctx context.Context) error {
		ends := make(chan error, len(conns))
		for _, c := range conns {
			do := func() {
				defer c.endWith(ctx)()
				ends <- took.time(func() error { return c.batches(job.commands/job.piece, job.piece) })
			}
			if job.inTurn {
				do()
			} else {
				go do()
			}
		}
		var errs []error
		for range conns {
			errs = append(errs, <-ends)
		}
		return errors.Join(errs...)
	})
	return nil
}

// batches are so many pipelines, one after the other.
func (c *caller) batches(count, commands int) error {
	for range count {
		if err := c.batch(commands); err != nil {
			return err
		}
	}
	return nil
}

// batch is one pipeline: all commands are sent before the first reply is read.
func (c *caller) batch(commands int) error {
	var out []byte
	for range commands {
		out = resp.AppendCommand(out, "GET", batchKey())
	}
	if _, err := c.Write(out); err != nil {
		return err
	}
	for range commands {
		if err := c.reply(); err != nil {
			return err
		}
	}
	return nil
}

// bigPipelines are those of a batch job.
var bigPipelines = Fault{
	Name:  "oversized-pipeline-or-multikey",
	Cause: "oversized-pipeline-or-multikey",
	Needs: Needs{Topologies: []Topology{Standalone, Replicated, Namespaced, Proxied}},
	Calls: true,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"connections": float64(1 + r.IntN(12)), "commands": between(r, 200, 30_000)}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, _ Strength) error {
		return fillKeys(ctx, st.Server, batchKeys)
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		job := batchJob{connections: s.int("connections"), commands: s.int("commands"), piece: s.int("commands")}
		return l.startBatchJob(ctx, st.Server.Addr, job, 400*time.Millisecond, l.timings("pipelines"))
	},
}
