package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
)

// clocks replays half of the cells with servers whose clocks are seven hours behind.
func clocks(ctx context.Context, o *options, s *stack) error {
	const behind = 7 * time.Hour
	o.heading("Clocks that are 7 h apart, in every other recording between callers and servers")
	r := o.replay(s, false)
	isServer := map[string]bool{}
	for _, script := range o.incident.scripts {
		for _, w := range script.rows {
			if w.side == recording.Server {
				isServer[script.host] = true
			}
		}
	}
	r.skew = func(host string, cell int) time.Duration {
		if isServer[host] && cell%2 == 1 {
			return -behind
		}
		return 0
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	want := r.expected()
	got, err := s.drained(ctx, want)
	if err != nil {
		return err
	}
	o.compare("as sent", want, got)
	f, err := s.named(ctx, r)
	if err != nil {
		return err
	}
	q, _ := manyhosts.QuestionOf("clocks")
	a, err := manyhosts.Ask(ctx, s, q, f)
	if err != nil {
		return err
	}
	joined, right := map[bool]int64{}, true
	for _, row := range a.Rows.Values {
		least := time.Duration(a.Rows.Int(row, "least_ns"))
		isBehind := least < -behind/2
		joined[isBehind] += a.Rows.Int(row, "calls")
		if isBehind {
			least += behind
		}
		right = right && least.Abs() < time.Second
	}
	pairs := map[bool]int64{}
	for cell := range r.cells {
		pairs[cell%2 == 1] += pairsOf(r.turns(cell, r.laps, r.base, r.hasIncident(cell)))
	}
	o.check("`clocks`: joined calls, and each pair of hosts is 7 h or nothing apart, to a second",
		right && reflect.DeepEqual(joined, pairs), "%d of %d that are 7 h apart, %d of %d that are not", joined[true],
		pairs[true], joined[false], pairs[false])
	for _, last := range []time.Duration{24 * time.Hour, 90 * time.Minute} {
		q, _ := manyhosts.QuestionOf("calls")
		f.From = f.To.Add(-last)
		a, err := manyhosts.Ask(ctx, s, q, f)
		if err != nil {
			return err
		}
		both, server := 0, 0
		for _, row := range a.Rows.Values {
			if a.Rows.Int(row, "server_ns") > 0 {
				server++
				if a.Rows.Int(row, "caller_ns") > 0 {
					both++
				}
			}
		}
		name := fmt.Sprintf("`calls` of the last %s: both ends are there", last)
		if last == 24*time.Hour {
			o.check(name, int64(both) == pairs[true]+pairs[false], "%d of %d", both, pairs[true]+pairs[false])
			continue
		}
		o.row(name, "%d of %d: the others' servers say that it was 7 h earlier", both, pairs[true]+pairs[false])
	}
	minutes, err := s.Query(ctx, fmt.Sprintf("SELECT uniqExact(host) AS n, countIf(at > %d) AS wrong FROM minute_row "+
		"WHERE host IN (SELECT host FROM minute_row WHERE at < %d)", r.base.Unix()-3600, r.base.Unix()-3600),
		manyhosts.Filter{})
	if err != nil {
		return err
	}
	hosts := int64(r.cells/2) * int64(len(isServer))
	n, wrong := minutes.Int(minutes.Values[0], "n"), minutes.Int(minutes.Values[0], "wrong")
	o.check("minutes of these hosts are where the hosts say that they were", n == hosts && wrong == 0,
		"%d of %d hosts, %d minutes elsewhere", n, hosts, wrong)
	return nil
}
