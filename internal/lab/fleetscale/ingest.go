package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
)

// ingest measures what it costs to take what agents push, and compares the tables with it.
func ingest(ctx context.Context, o *options, s *stack) error {
	r := o.replay(s, !o.fast)
	want := r.expected()
	before, began := s.costs(), time.Now()
	seen, err := s.watched(ctx, func() error { return r.run(ctx) })
	if err != nil {
		return err
	}
	taken := time.Since(began)
	got, err := s.drained(ctx, want)
	if err != nil {
		return err
	}
	stored, after := time.Since(began), s.costs()
	pace := "as fast as all is taken"
	if r.paced {
		pace = "at their pace"
	}
	o.heading(fmt.Sprintf("%d agents, %g minutes of each, 1 of %d with an incident, %s", r.agents(),
		r.length.Minutes()*float64(r.laps), r.incidents, pace))
	rows := int64(0)
	for _, n := range want {
		rows += n.rows
	}
	o.row("the last push was taken after, and was in the tables", "%s, %s later", taken.Round(time.Second),
		(stored - taken).Round(time.Second))
	if !r.paced {
		o.row("agent-minutes per second", "%.0f", r.minutes()/stored.Seconds())
	}
	o.row("rows per second", "%.0f", float64(rows)/stored.Seconds())
	o.row("pushes: taken, failed and sent again, metrics lost, refused", "%d, %d, %d, %d", r.sent.Load(),
		r.failed.Load(), r.lost.Load(), r.giveUp.Load())
	o.cost("Collector", after.collector-before.collector, stored, r)
	o.cost("engine and its shim", after.engine-before.engine, stored, r)
	o.cost("replay", after.own-before.own, stored, r)
	both := (after.collector + after.engine - before.collector - before.engine).Seconds() / r.minutes()
	o.row("agents for which these two would use 2 cores, computed of their CPU time", "%.0f", 2*60/both)
	_, collector := s.collector.used()
	_, engine := s.engine.used()
	o.row("most memory of the Collector, the engine", "%s, %s", format.Bytes(int64(collector)),
		format.Bytes(int64(engine)))
	o.row("most in the queues", "%s; their files %s", sizes(seen.queued), format.Bytes(seen.disk))
	o.row("bytes on the wire, replayed, per agent and minute", "%.0f", float64(r.wire.Load())/r.minutes())
	o.compare("as sent", want, got)
	if err := o.disk(ctx, s); err != nil {
		return err
	}
	o.network(s)
	return o.questions(ctx, s, r)
}

func (o *options) cost(who string, cpu, of time.Duration, r *replay) {
	o.row("CPU of the "+who, "%.2f cores, %.2f ms per agent-minute", cpu.Seconds()/of.Seconds(),
		float64(cpu.Microseconds())/1e3/r.minutes())
}

func sizes(bySignal map[string]int64) string {
	var out []string
	for _, signal := range slices.Sorted(maps.Keys(bySignal)) {
		out = append(out, signal+" "+format.Bytes(bySignal[signal]))
	}
	return strings.Join(out, ", ")
}

// incidentsPerDay of a host is what days are extrapolated with.
const incidentsPerDay = 2

// day extrapolates to a host and a day: what it is in quiet minutes, and what incidents add.
func (o *options) day(quiet, incident float64) float64 {
	return 24*60*quiet + incidentsPerDay*o.length.Minutes()*max(incident-quiet, 0)
}

// disk is what rows take once they are merged.
func (o *options) disk(ctx context.Context, s *stack) error {
	quiet, with := tallies(o.turns(0, 1, time.Now(), false)), tallies(o.turns(0, 1, time.Now(), true))
	per := float64(len(o.hosts)) * o.length.Minutes()
	total := 0.0
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if err := s.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
			return err
		}
		r, err := s.Query(ctx, "SELECT sum(rows) AS n, sum(bytes_on_disk) AS b FROM system.parts WHERE active AND "+
			"database = 'slowpath' AND table = '"+table+"'", manyhosts.Filter{})
		if err != nil {
			return err
		}
		rows, bytes := r.Int(r.Values[0], "n"), r.Int(r.Values[0], "b")
		if rows == 0 {
			continue
		}
		each := float64(bytes) / float64(rows)
		perDay := o.day(float64(quiet[table].rows)/per, float64(with[table].rows)/per)
		total += each * perDay
		o.row("`"+table+"`: bytes per row, rows per host and day (extrapolated)", "%.1f, %.0f", each, perDay)
	}
	o.row(fmt.Sprintf("bytes on disk per host and day (extrapolated: quiet minutes, %d incidents)", incidentsPerDay),
		"%s", format.Bytes(int64(total)))
	return nil
}

// network is what real agents sent while they were recorded.
func (o *options) network(s *stack) {
	quiet, plain := o.quiet.bytes(len(o.hosts), o.length)
	with, plainWith := o.incident.bytes(len(o.hosts), o.length)
	o.row("bytes on the wire per agent and minute, as recorded: quiet, with an incident", "%.0f, %.0f", quiet, with)
	o.row("bytes on the wire per host and day (extrapolated alike)", "%s", format.Bytes(int64(o.day(quiet, with))))
	for _, signal := range []string{traces, metrics, logs} {
		n := max(plain[signal], plainWith[signal]) * 1000
		if n > 0 {
			o.row(fmt.Sprintf("the queue for %s (%s) is full, with 1000 agents and no engine, after", signal,
				format.Bytes(s.queue)), "%.0f minutes, with incidents everywhere", float64(s.queue)/n)
		}
	}
}

// questions asks each question of the time that was replayed.
func (o *options) questions(ctx context.Context, s *stack, r *replay) error {
	f, err := s.named(ctx, r)
	if err != nil {
		return err
	}
	f.Limit = 20
	for _, q := range manyhosts.Questions {
		began := time.Now()
		a, err := manyhosts.Ask(ctx, s, q, f)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			first, _, _ := strings.Cut(err.Error(), "\n")
			o.row("question `"+q.Name+"`", "no answer after %s: %.150s", took.Round(time.Millisecond), first)
		default:
			o.row("question `"+q.Name+"`", "%s, %d rows", took.Round(time.Millisecond), len(a.Rows.Values))
		}
	}
	return nil
}

// named has the nodes named, and gives a filter of all that was replayed.
func (s *stack) named(ctx context.Context, r *replay) (f manyhosts.Filter, err error) {
	for _, statement := range []string{"SYSTEM REFRESH VIEW node_name_in", "SYSTEM WAIT VIEW node_name_in"} {
		if err := s.Exec(ctx, statement); err != nil {
			return f, err
		}
	}
	end := r.base.Add(time.Duration(r.laps)*r.length + time.Hour)
	return manyhosts.Filter{From: end.Add(-24 * time.Hour), To: end, Limit: 100_000, Step: time.Minute}, nil
}
