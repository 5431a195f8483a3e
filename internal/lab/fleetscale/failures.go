package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"slowpath/internal/manyhosts"
)

// failures kills the Collector and the engine while agents push, sends all of it once more, and asks.
func failures(ctx context.Context, o *options, s *stack) error {
	o.heading("Failures")
	r := o.replay(s, true)
	r.laps = int((o.outage + 2*time.Minute) / r.length)
	r.laps = max(r.laps+1, o.laps)
	broken := make(chan error, 1)
	seen, err := s.watched(ctx, func() error {
		go func() { broken <- o.breakStack(ctx, s) }()
		return r.run(ctx)
	})
	if err != nil {
		return err
	}
	if err := <-broken; err != nil {
		return err
	}
	want := r.expected()
	got, err := s.drained(ctx, want)
	if err != nil {
		return err
	}
	o.row("what happened", "%d agents push for %g minutes; kill -9 of the Collector, which is away for 10 s; kill -9 "+
		"of the engine, which is away for %s; in the middle of that once more of the Collector", r.agents(),
		r.length.Minutes()*float64(r.laps), o.outage)
	o.row("pushes: taken, failed and sent again, metrics lost, refused", "%d, %d, %d, %d", r.sent.Load(),
		r.failed.Load()-r.lost.Load(), r.lost.Load(), r.giveUp.Load())
	o.row("most in the queues", "%s, of %d bytes each", sizes(seen.queued), s.queue)
	o.compare("after the failures", want, got)
	if err := o.twice(ctx, s, r, want); err != nil {
		return err
	}
	if err := o.versions(ctx, s, r); err != nil {
		return err
	}
	return o.lies(ctx, s, r)
}

// breakStack kills, and starts again.
func (o *options) breakStack(ctx context.Context, s *stack) error {
	away := func(p *process, for_ time.Duration) error {
		p.kill()
		if err := until(ctx, time.Now().Add(for_)); err != nil {
			return err
		}
		return p.start(ctx)
	}
	const short = 10 * time.Second
	if err := until(ctx, time.Now().Add(30*time.Second)); err != nil {
		return err
	}
	if err := away(&s.collector, short); err != nil {
		return err
	}
	if err := until(ctx, time.Now().Add(20*time.Second)); err != nil {
		return err
	}
	s.engine.kill()
	if err := until(ctx, time.Now().Add(o.outage/2)); err != nil {
		return err
	}
	if err := away(&s.collector, short); err != nil {
		return err
	}
	if err := until(ctx, time.Now().Add(o.outage/2-short)); err != nil {
		return err
	}
	return s.engine.start(ctx)
}

// twice sends all that was sent once more.
func (o *options) twice(ctx context.Context, s *stack, r *replay, want map[string]tally) error {
	answers := func() (out []manyhosts.Rows, err error) {
		f, err := s.named(ctx, r)
		for _, name := range []string{"worst", "who", "incidents"} {
			if err == nil {
				q, _ := manyhosts.QuestionOf(name)
				var a manyhosts.Answer
				a, err = manyhosts.Ask(ctx, s, q, f)
				out = append(out, a.Rows)
			}
		}
		return out, err
	}
	before, err := answers()
	if err != nil {
		return err
	}
	again := &replay{
		recorded: r.recorded, cells: r.cells, laps: r.laps, base: r.base, incidents: r.incidents, to: r.to,
	}
	if err := again.run(ctx); err != nil {
		return err
	}
	got, err := s.drained(ctx, want)
	if err != nil {
		return err
	}
	o.compare("sent twice", want, got)
	after, err := answers()
	if err != nil {
		return err
	}
	o.check("sent twice: `worst`, `who` and `incidents` say the same", reflect.DeepEqual(before, after),
		"%d, %d and %d rows", len(after[0].Values), len(after[1].Values), len(after[2].Values))
	return nil
}

// versions checks that agents of two versions are asked together.
func (o *options) versions(ctx context.Context, s *stack, r *replay) error {
	for _, of := range []string{"minute_row", "edge_row"} {
		rows, err := s.Query(ctx, "SELECT h.value AS version, uniqExact(h.host) AS hosts FROM host h WHERE "+
			"h.name = 'slowpath' AND h.host IN (SELECT host FROM "+of+") GROUP BY h.value ORDER BY h.value",
			manyhosts.Filter{})
		if err != nil {
			return err
		}
		hosts, detail := int64(0), ""
		for _, one := range rows.Values {
			hosts += rows.Int(one, "hosts")
			detail += fmt.Sprintf("%d of %s, ", rows.Int(one, "hosts"), rows.Text(one, "version"))
		}
		o.check("agents of two versions: `"+of+"`", len(rows.Values) == 2 && hosts == int64(r.agents()), "%s%d in all",
			detail, r.agents())
	}
	return nil
}
