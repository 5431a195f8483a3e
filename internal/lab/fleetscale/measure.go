package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
)

// options of a measurement.
type options struct {
	recorded
	agents, laps, incidents int
	fast                    bool
	collector, python       string
	outage, limit           time.Duration
	queue                   int
	out                     io.Writer
	wrong                   int // checks that failed
}

func measureCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	o := options{out: out}
	f := flag.NewFlagSet("fleetscale measure", flag.ContinueOnError)
	f.IntVar(&o.agents, "agents", 1000, "how `many` agents are replayed, rounded up to whole recordings")
	f.IntVar(&o.laps, "laps", 1, "how many `times` each replays the minutes of the recording")
	minutes := f.Int("minutes", 0, "how many `minutes` of each part of the recording are replayed; 0: all")
	f.IntVar(&o.incidents, "incidents", 20, "of how many recordings `one` has an incident, the others are quiet")
	f.BoolVar(&o.fast, "fast", false, "as fast as all is taken, not at the pace of the agents")
	f.StringVar(&o.collector, "collector", "", "`program` of the Collector, which scripts/collector prints")
	f.StringVar(&o.python, "python", enginePython(), "`python` that has chdb")
	f.DurationVar(&o.limit, "limit", 30*time.Minute, "how `long` it may take")
	f.DurationVar(&o.outage, "outage", 10*time.Minute, "how `long` the engine is away, in the run of failures")
	f.IntVar(&o.queue, "queue", 0, "`bytes` of each of the Collector's queues; 0: as in the chart")
	what := f.String("run", "ingest", "`one` of "+strings.Join(slices.Sorted(maps.Keys(runs)), ", "))
	if err := f.Parse(args); err != nil {
		return errUsage
	}
	run, ok := runs[*what]
	if !ok || f.NArg() != 1 || o.agents < 1 || o.laps < 1 || o.incidents < 1 || *minutes < 0 ||
		o.collector == "" {
		f.Usage()
		return errUsage
	}
	if o.recorded, err = readRecorded(f.Arg(0), time.Duration(*minutes)*time.Minute); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	s, err := startStack(ctx, o.collector, o.python, o.queue)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	err = run(ctx, &o, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "logs of the Collector and the engine are in", s.dir)
		s.keep = true
	}
	if err = errors.Join(err, s.stop()); err == nil && o.wrong > 0 {
		err = fmt.Errorf("%s failed", format.Count(o.wrong, "check"))
	}
	return err
}

var runs = map[string]func(context.Context, *options, *stack) error{
	"ingest": ingest, "failures": failures, "clocks": clocks,
}

func enginePython() string {
	cache, _ := os.UserCacheDir() // without one the option is needed
	return filepath.Join(cache, "slowpath", "chdb", "bin", "python")
}

// row prints one of the table.
func (o *options) row(what, value string, args ...any) {
	fmt.Fprintf(o.out, "| %s | %s |\n", what, fmt.Sprintf(value, args...))
}

// check prints what has to be so.
func (o *options) check(what string, ok bool, detail string, args ...any) {
	said := "yes"
	if !ok {
		said = "**no**"
		o.wrong++
	}
	o.row(what, "%s: %s", said, fmt.Sprintf(detail, args...))
}

func (o *options) heading(title string) {
	fmt.Fprintf(o.out, "\n| %s | |\n|---|---|\n", title)
}

// replay is one of the options.
func (o *options) replay(s *stack, paced bool) *replay {
	r := &replay{
		recorded: o.recorded, cells: (o.agents + len(o.hosts) - 1) / len(o.hosts), laps: o.laps, paced: paced,
		incidents: o.incidents, to: s.otlp, base: time.Now().Truncate(time.Minute),
	}
	if !paced { // it ends now, not in the future
		r.base = r.base.Add(-time.Duration(o.laps) * o.length)
	}
	return r
}

// agents is how many a replay is.
func (r *replay) agents() int { return r.cells * len(r.hosts) }

// minutes is how many minutes of agents it is.
func (r *replay) minutes() float64 { return float64(r.agents()*r.laps) * r.length.Minutes() }

// peaks are the highest of what was seen while something ran.
type peaks struct {
	queued map[string]int64 // bytes by signal
	disk   int64            // bytes of the queue's files
}

// watched runs something, and looks at the queue meanwhile.
func (s *stack) watched(ctx context.Context, run func() error) (p peaks, err error) {
	p.queued = map[string]int64{}
	done := make(chan error, 1)
	go func() { done <- run() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return p, err
		case <-tick.C:
			now, _ := s.queued(ctx) // nobody answers while it is away
			for signal, n := range now {
				p.queued[signal] = max(p.queued[signal], n)
			}
			p.disk = max(p.disk, sizeOf(filepath.Join(s.dir, "queue")))
		}
	}
}

// counted are the rows of the tables.
func (s *stack) counted(ctx context.Context) (map[string]tally, error) {
	out := map[string]tally{}
	for table, summed := range tables {
		r, err := s.Query(ctx, "SELECT count() AS n, sum("+summed+") AS s FROM "+table+" FINAL", manyhosts.Filter{})
		if err != nil {
			return nil, err
		}
		out[table] = tally{r.Int(r.Values[0], "n"), r.Int(r.Values[0], "s")}
	}
	return out, nil
}

// drained waits until the queues are empty and the tables have what is expected, or do not change any more.
func (s *stack) drained(ctx context.Context, want map[string]tally) (got map[string]tally, err error) {
	var was map[string]tally
	same := 0
	return got, eventually(ctx, time.Hour, "the end of the queue", func() (bool, error) {
		queued, err := s.queued(ctx)
		for _, n := range queued {
			if n > 0 {
				return false, err
			}
		}
		if err == nil {
			got, err = s.counted(ctx)
		}
		if err != nil {
			return false, err
		}
		if same++; !maps.Equal(got, was) {
			same = 0
		}
		was = got
		return maps.Equal(got, want) || same > 60, nil
	})
}

// compare checks that the tables have what was sent.
func (o *options) compare(what string, want, got map[string]tally) {
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		w, g := want[table], got[table]
		detail := fmt.Sprintf("%d of %d rows", g.rows, w.rows)
		if tables[table] != "0" {
			detail += fmt.Sprintf(", %s %d of %d", tables[table], g.sum, w.sum)
		}
		o.check(fmt.Sprintf("%s: `%s`", what, table), w == g, "%s", detail)
	}
}

// costs are the CPU times of all, at one time.
type costs struct{ collector, engine, own time.Duration }

func (s *stack) costs() (c costs) {
	c.collector, _ = s.collector.used()
	c.engine, _ = s.engine.used()
	if self, err := procfs.Self(); err == nil {
		if stat, err := self.Stat(); err == nil {
			c.own = time.Duration(stat.CPUTime() * float64(time.Second))
		}
	}
	return c
}
