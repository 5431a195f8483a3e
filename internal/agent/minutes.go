package agent

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// keepMinutes adds each minute that is complete to the history, and the last one when ctx ends.
func (a *Agent) keepMinutes(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for next := a.view.Complete() / 60 * 60; ; {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		a.checkFiles()
		for now := a.view.Complete(); next+60 <= now || ended && next < now; next += 60 {
			a.keepMinute(next)
		}
		if ended {
			return
		}
	}
}

// checkFiles finds out whether the directory of the data is still there, and whether incidents can be kept again. What
// could not be written is tried again.
func (a *Agent) checkFiles() {
	gone := a.dir.gone()
	a.problem("data", gone)
	a.mu.Lock()
	failed := a.problems[incidentsProblem] != ""
	a.mu.Unlock()
	if gone != "" || !failed && !a.store.Unwritten() {
		return
	}
	if err := a.store.Try(); err == nil {
		a.problem(incidentsProblem, "")
	} else if !failed {
		a.cannotKeep(err)
	}
}

func (a *Agent) keepMinute(start int64) {
	before := a.minutesBefore(start)
	missed, from := missedCalls(a.view.Unseen()), a.watchedFrom.Load()
	complete := from > 0 && from <= start && a.view.Complete() >= start+60 && missed == a.missed
	a.missed = missed
	for _, m := range minutesOf(start, a.view.Seconds(start, start+60)) {
		if b, ok := before[population{m.minute.Node, m.whose}]; ok {
			m.add(b)
		}
		m.minute.ThresholdNs, m.minute.Complete = int64(a.view.Threshold()), complete
		if err := a.history.Add(m.row()); err != nil {
			a.problem("history", "the history of minutes cannot be written: "+err.Error())
			return
		}
	}
	a.problem("history", "")
}

// missedCalls is how many calls, and other things that are counted, were missed since the watch began.
func missedCalls(unseen []recording.Unseen) (n float64) {
	for _, u := range unseen {
		if !u.Counted {
			n += u.Count
		}
	}
	return n
}

// minutesBefore are what an agent before this one has kept of the minute in which this one began.
func (a *Agent) minutesBefore(start int64) map[population]incidents.Minute {
	if a.since.Unix() < start {
		return nil
	}
	rows, err := a.history.Minutes(start, start+60)
	if err != nil {
		return nil
	}
	out := map[population]incidents.Minute{}
	for _, m := range rows {
		out[population{m.Node, whose(m.Own)}] = m
	}
	return out
}

func whose(own bool) live.Whose {
	if own {
		return live.Own
	}
	return live.Users
}

// minute is being added up.
type minute struct {
	minute incidents.Minute
	whose  live.Whose
	sum    live.Latencies
	hdr    *hdrhistogram.Histogram // of an agent before; nil: none
}

func minutesOf(start int64, seconds []live.Second) map[population]*minute {
	out := map[population]*minute{}
	for _, s := range seconds {
		key := population{s.Node, s.Whose}
		m := out[key]
		if m == nil {
			m = &minute{whose: s.Whose, minute: incidents.Minute{Start: start, Node: s.Node, Own: s.Whose == live.Own}}
			out[key] = m
		}
		m.minute.Calls, m.minute.Slow = m.minute.Calls+s.Calls, m.minute.Slow+s.Slow
		m.minute.Failed += s.Failed
		m.minute.AtServer = m.minute.AtServer || s.Side == recording.Server
		m.sum.Merge(s.Latencies)
	}
	return out
}

// add adds what an agent before has kept.
func (m *minute) add(b incidents.Minute) {
	h, err := hdrhistogram.Decode(b.HDR)
	if err != nil {
		return // damaged, or without latencies
	}
	m.hdr = h
	m.minute.Calls, m.minute.Slow, m.minute.Failed = m.minute.Calls+b.Calls, m.minute.Slow+b.Slow,
		m.minute.Failed+b.Failed
	m.minute.MaxNs, m.minute.AtServer = b.MaxNs, m.minute.AtServer || b.AtServer
}

func (m *minute) row() incidents.Minute {
	out := m.minute
	out.MaxNs = max(out.MaxNs, m.sum.MaxNs())
	h := m.sum.HDR()
	if m.hdr != nil {
		h.Merge(m.hdr)
	}
	if h.TotalCount() > 0 {
		out.P50Ns, out.P99Ns = h.ValueAtQuantile(50), h.ValueAtQuantile(99)
		if b, err := recording.EncodeHistogram(h); err == nil {
			out.HDR = b
		}
	}
	return out
}
