package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/wire/resp"
)

// pollCommand is a command of each poll, the blind spot that its refusal makes, and what is done with its reply.
type pollCommand struct {
	spot  string
	args  []string
	reply func(pollTime, resp.Value)
}

// pollCommands are the commands of a poll, sent in one write. "INFO all" is everything but modules, in all versions.
func (w *watch) pollCommands() []pollCommand {
	all := []pollCommand{
		{"INFO", []string{"INFO", "all"}, nil}, // together with CLUSTER INFO, see takeInfo
		{"CLUSTER INFO", []string{"CLUSTER", "INFO"}, nil},
	}
	for _, r := range w.logs {
		if r.of == slowlog || w.offers("commandlog-reply-larger-than") {
			all = append(all, pollCommand{r.of.spot, r.of.get(1), r.takeNewest})
		}
	}
	all = append(all, pollCommand{
		"LATENCY",
		[]string{"LATENCY", "LATEST"},
		func(at pollTime, v resp.Value) { w.extras.stale = w.latency.stale(parseLatest(v)) },
	})
	var out []pollCommand
	for _, q := range all {
		if w.refusals.allows(q.spot) && (q.spot != "CLUSTER INFO" || w.in.numbers["cluster_enabled"] == 1) {
			out = append(out, q)
		}
	}
	return out
}

// ask sends commands in one write. After an error the connection is closed.
func (w *watch) ask(ctx context.Context, cmds [][]string) ([]resp.Value, pollTime, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	at := pollTime{sent: w.Clock.Now()}
	replies, err := w.session.Pipeline(ctx, cmds)
	at.done = w.Clock.Now()
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			w.reportError("command", err)
		}
		w.cost.used(cmds, time.Duration(at.done-at.sent))
		w.session.Close()
		w.session = nil
	}
	return replies, at, err
}

// poll sends the commands of a poll, then those that the replies ask for. It reports whether the poll was answered.
func (w *watch) poll(ctx context.Context, last bool) bool {
	qs := w.pollCommands()
	cmds := commands(qs)
	replies, at, err := w.ask(ctx, cmds)
	w.event(at.sent, at.done-at.sent, recording.KindPoll, struct{}{})
	if err != nil {
		w.broken++
		return false
	}
	w.polls++
	w.broken = 0
	w.takeInfo(at, qs, replies, last)
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	for i, q := range qs {
		if err := replies[i].Err(); err != nil {
			w.refusals.check(q.spot, err)
		} else if q.reply != nil {
			q.reply(at, replies[i])
		}
	}
	w.more(ctx, last)
	return true
}

func commands(qs []pollCommand) [][]string {
	cmds := make([][]string, len(qs))
	for i, q := range qs {
		cmds[i] = q.args
	}
	return cmds
}

// takeInfo records what INFO and CLUSTER INFO say. That a server refuses INFO for now (BUSY) is recorded as an error.
func (w *watch) takeInfo(at pollTime, qs []pollCommand, replies []resp.Value, last bool) {
	var in info
	ok := false
	for i, q := range qs {
		err := replies[i].Err()
		switch {
		case q.spot == "INFO" && err == nil:
			in, ok = parseInfo(replies[i].Text()), true
		case q.spot == "INFO" && isTemporaryError(err):
			w.reportError("command", err)
		case q.spot == "CLUSTER INFO" && err == nil && ok:
			in.merge(parseInfo(replies[i].Text()))
		}
	}
	if !ok {
		w.selfSamples(at.done, last)
		return
	}
	w.lastError = ""
	w.clock.learn(at, in.numbers["server_time_usec"])
	w.budget.charge(w.cost.measure(in))
	restarted := w.changes.add(at, in)
	if restarted {
		for _, r := range w.logs {
			r.restarted()
		}
	}
	w.extras.set = w.extras.set || restarted || w.in.numbers != nil && configured(w.in, in, w.extras.asked)
	w.extras.asked = 0
	w.samples.poll(at, in.fields, last)
	if w.samples.omitted {
		w.refusals.reportOnce("names of INFO", recording.BlindSpot{
			What: "some numbers of INFO", Why: fmt.Sprintf("the server has given more than %d names of them", maxNames),
			Enable: "watch for a shorter time",
		})
	}
	if perSecond, known := in.numbers["instantaneous_ops_per_sec"]; known && w.Load != nil {
		w.Load(perSecond)
	}
	w.in = in
	if text := jsonObject(in.text); text != w.text {
		w.text = text
		w.snapshot(at.done, SnapshotInfo, text)
	}
	w.selfSamples(at.done, last)
}

func isTemporaryError(err error) bool {
	var reply *resp.ServerError
	return errors.As(err, &reply) && isTemporary(reply.Code)
}

// selfSamples records what the watch costs. At the end, what no INFO has measured yet is estimated.
func (w *watch) selfSamples(timeNs int64, last bool) {
	total := w.cost.total
	if last {
		total += w.cost.estimate()
	}
	w.self.poll(pollTime{timeNs, timeNs}, []field{
		{series.OwnCommandsTime.Name, float64(total.Nanoseconds()) / 1000},
		{series.OwnPolls.Name, float64(w.polls)},
		{series.OwnSlowlogLost.Name, float64(w.logs[0].lost)},
	}, last)
}

// interval is the time to the next poll, by what a poll costs.
func (w *watch) interval() time.Duration {
	return w.between(w.cost.leastOf(commands(w.pollCommands())))
}

// between is the time between polls of this cost. One measurement alone may be the server's wait for a CPU: the next
// poll comes soon then.
func (w *watch) between(cost time.Duration, sure bool) time.Duration {
	d := w.budget.interval(w.Every, cost)
	if !sure {
		d = min(d, max(w.Every, unsureRound))
	}
	return max(d, w.Every*time.Duration(w.Pace.Times()))
}

// fetchLogs reads the new entries of the server's logs.
func (w *watch) fetchLogs(ctx context.Context) error {
	for _, r := range w.logs {
		n := r.fetch
		r.fetch = 0
		if n == 0 {
			continue
		}
		cmds := [][]string{r.of.get(min(n+fetchMore, fetchAtMost))}
		replies, at, err := w.ask(ctx, cmds)
		if err != nil {
			return err
		}
		w.cost.used(cmds, time.Duration(at.done-at.sent))
		r.read(at, parseLog(replies[0]))
	}
	if lost := w.logs[0].lost; lost > 0 {
		w.refusals.skip("SLOWLOG lost", strconv.FormatInt(lost, 10)+" entries were overwritten before they "+
			"could be read", "raise slowlog-max-len, or slowlog-log-slower-than")
	}
	return nil
}

// fetchLatency reads the histories of the events that have new samples.
func (w *watch) fetchLatency(ctx context.Context, last bool) error {
	events := w.extras.stale
	w.extras.stale = nil
	if len(events) == 0 {
		return nil
	}
	cmds := make([][]string, len(events))
	for i, e := range events {
		cmds[i] = []string{"LATENCY", "HISTORY", e}
	}
	replies, at, err := w.ask(ctx, cmds)
	if err != nil {
		return err
	}
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	for i, v := range replies {
		if err := v.Err(); err != nil {
			w.refusals.check("LATENCY", err)
			continue
		}
		w.latency.read(at, events[i], parseHistory(v), last)
	}
	return nil
}
