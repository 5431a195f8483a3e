// Package accounting gives the slow calls of a live view their accounts while the watch goes on, so that a call has the
// same parts wherever it is shown. It sees what accounts are made of: what the tap, the host and the server say of the
// last seconds.
package accounting

import (
	"context"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/account"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

const (
	// settled is how long after a call what happened during it is known: the tap is read about once per second, SLOWLOG
	// is polled.
	settled = 3 * time.Second
	every   = 5 * time.Second
	// span is of how many seconds rows are kept.
	span = 15 * time.Second
)

// By gives slow calls of a view their accounts in a ledger.
func By(v *live.View, l *account.Ledger) {
	for i := range l.Slow {
		if l.Slow[i].IsPart() {
			continue
		}
		whole := l.Whole(i)
		segs := make([]recording.Segment, 0, len(whole))
		for _, s := range whole {
			segs = append(segs, recording.Segment{
				Actor: s.Actor, State: s.State, FromNs: s.FromNs, ToNs: s.ToNs, Culprit: s.Culprit,
			})
		}
		v.Account(l.Slow[i].Call, segs)
	}
}

// Recent gives slowpath's own slow calls of a view their accounts: of them the probe sees its own part alone. The tap
// measures all of a user's call.
type Recent struct {
	view   *live.View
	clock  clock.Clock
	window *live.Window
	done   uint64 // the number of the newest call that has been looked at
}

// New makes one for a view.
func New(v *live.View, c clock.Clock) *Recent {
	return &Recent{view: v, clock: c, window: live.NewWindow(c, span)}
}

// Run gives accounts until ctx ends. Without slow calls it does nothing.
func (r *Recent) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.Look()
		}
	}
}

// Look gives accounts to the calls whose time is settled.
func (r *Recent) Look() {
	calls, _ := r.view.SlowSince(r.done)
	before, newest := r.clock.Now()-int64(settled), uint64(0)
	for _, c := range calls {
		if c.Call.EndNs > before {
			break
		}
		r.done = c.Number
		if c.Whose == live.Own {
			newest = c.Number
		}
	}
	if newest == 0 {
		return
	}
	if rec, ok := r.window.Recording(); ok {
		rec.Meta[recording.MetaSlow] = r.view.Threshold().String()
		By(r.view, account.Build(rec))
	}
}

// Sink takes the rows of a watch.
func (r *Recent) Sink() recording.ProfileSink { return evidence{r.window} }

// evidence lets those rows pass that accounts of slowpath's own calls are made of.
type evidence struct{ *live.Window }

// Call implements recording.Sink.
func (e evidence) Call(c recording.Call, segs ...recording.Segment) {
	if c.Source == recording.SourceProbe {
		e.Window.Call(c, segs...)
	}
}

// Histogram implements recording.Sink.
func (evidence) Histogram(recording.Histogram) {}

// Sample implements recording.Sink.
func (e evidence) Sample(s recording.Sample) {
	if s.Name == series.MainRun.Name || strings.HasPrefix(s.Name, "cmdstat_") {
		e.Window.Sample(s)
	}
}

// ConnUse implements recording.Sink.
func (evidence) ConnUse(string, recording.ConnUse) {}

// Event implements recording.Sink.
func (e evidence) Event(row recording.Event) {
	if !strings.HasPrefix(row.Subject, recording.ProcessPrefix) {
		e.Window.Event(row)
	}
}

// Snapshot implements recording.Sink.
func (e evidence) Snapshot(s recording.Snapshot) {
	if s.Source == recording.SourceHost && s.Name == "process" {
		e.Window.Snapshot(s)
	}
}

// Profile implements recording.ProfileSink.
func (evidence) Profile(recording.Profile) {}
