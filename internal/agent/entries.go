package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/agent/ring"
)

// Bounds of what is kept beside minutes: how often, and soon for the first time, how many edges at once, how much later
// than it happened a change is known, and how old one may be.
const (
	entriesFirst = time.Minute
	entriesEvery = 5 * time.Minute
	maxEdges     = 100
	changesLate  = time.Minute
	mostChanges  = time.Hour
)

// changesFile is a recording of the moment, which is judged for what was changed.
const changesFile = "changes.slowpath"

// keepEntries adds to the history who called whom, and what was changed, until ctx ends.
func (a *Agent) keepEntries(ctx context.Context) {
	tick := time.NewTicker(entriesFirst)
	defer tick.Stop()
	edges, changes := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			a.keepEdges(edges, time.Now())
			return
		case now := <-tick.C:
			tick.Reset(entriesEvery)
			a.keepEdges(edges, now)
			edges = now
			if to := now.Add(-changesLate); a.keepChanges(ctx, changes, to) {
				changes = to
			}
		}
	}
}

// keepEdges adds the edges of a time to the history. Of many callers the last ones are one, "other", for each node.
func (a *Agent) keepEdges(from, to time.Time) {
	var out []incidents.Entry
	others := map[string]*incidents.Edge{}
	for _, e := range a.view.TakeEdges() {
		edge := &incidents.Edge{
			FromNs: from.UnixNano(), ToNs: to.UnixNano(), Caller: e.Caller, Unit: e.Program.Unit,
			Container: e.Program.Container, Pod: e.Program.Pod, Library: e.Library, Node: e.Node,
		}
		if len(out) >= maxEdges {
			known := others[e.Node]
			if known == nil {
				known = &incidents.Edge{FromNs: edge.FromNs, ToNs: edge.ToNs, Caller: "other", Node: e.Node}
				others[e.Node] = known
			}
			edge = known
		} else {
			out = append(out, incidents.Entry{Edge: edge})
		}
		edge.Calls, edge.Slow, edge.LostNs = edge.Calls+e.Calls, edge.Slow+e.Slow, edge.LostNs+e.LostNs
	}
	for _, edge := range others {
		out = append(out, incidents.Entry{Edge: edge})
	}
	a.keep(out)
}

// keepChanges adds what was changed in [from, to), which is before now, to the history: by a recording of it without
// calls, which is judged as that of an incident. It reports whether that time is done with.
func (a *Agent) keepChanges(ctx context.Context, from, to time.Time) (done bool) {
	now := time.Now()
	if oldest := now.Add(-mostChanges); from.Before(oldest) {
		from = oldest
	}
	if !from.Before(to) {
		return true
	}
	_ = a.dir.temp.Remove(changesFile)
	defer a.dir.temp.Remove(changesFile)
	err := a.ring.SaveCut(ctx, ring.Cut{
		From: now.Add(-time.Second), To: now, Before: now.Sub(from) + changesLate,
	}, a.dir.temp, changesFile)
	if err != nil { // nothing is watched, or the agent says that its files cannot be written
		return errors.Is(err, ring.ErrNothing)
	}
	doc, err := a.o.Judge(ctx, judge.Options{Folder: a.dir.temp, Recording: changesFile, Timeout: judgeTime})
	var d struct {
		Changes []incidents.Change `json:"changes"`
	}
	if err == nil {
		err = json.Unmarshal(doc, &d)
	}
	if err != nil {
		if ctx.Err() == nil {
			a.problem("changes", fmt.Sprintf("what was changed cannot be found out: %v", err))
		}
		return false
	}
	a.problem("changes", "")
	var out []incidents.Entry
	for _, c := range d.Changes {
		if known := c.Time.Add(time.Duration(c.WithinNs)); !known.Before(from) && known.Before(to) {
			out = append(out, incidents.Entry{Change: &c})
		}
	}
	a.keep(out)
	return true
}

func (a *Agent) keep(all []incidents.Entry) {
	if err := a.history.AddEntries(all); err != nil {
		a.problem("history", "the history cannot be written: "+err.Error())
	}
}
