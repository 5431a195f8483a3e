//go:build linux

package serving

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"

	"slowpath/internal/agent/delivery"
	"slowpath/internal/agent/door"
	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/agent/upload"
	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// open makes what shows the agent to others.
func (s *serving) open(ctx context.Context) (err error) {
	warn := func(line string) { s.log.Warn("%s", line) }
	s.metrics = metrics.New(metrics.Options{
		View: s.ag.View(), Version: s.app.Version, Health: s.metricsHealth, Deliveries: s.deliveries,
		TraceID: s.traceID,
	})
	var sent *folder.Folder
	if s.pushed != nil || s.bucket != nil {
		if sent, err = s.ag.Sent(); err != nil { // until the program ends
			return err
		}
	}
	if o := s.pushed; o != nil {
		o.Disk = &otlp.Disk{
			Store: s.ag.Store(), History: s.ag.History(), Folder: sent, Calls: s.ag.SlowCalls, First: s.ag.KeptSince,
		}
		o.View, o.Metrics, o.InIncident, o.Log = s.ag.View(), s.metrics.Gatherer(), s.ag.InIncident, warn
		if s.pushes, err = otlp.New(ctx, *o); err != nil {
			return err
		}
	}
	if s.bucket != nil {
		if s.upload, err = upload.New(upload.Options{
			Bucket: s.bucket, Cluster: s.Collector.Cluster, BytesPerDay: int64(s.Recordings.BytesPerDay),
			Store: s.ag.Store(), Folder: sent, Log: warn,
		}); err != nil {
			return err
		}
	}
	s.notify = notify.New(notify.Options{Receivers: s.notified, Log: warn})
	o := s.page
	o.Store, o.History, o.View, o.Slow = s.ag.Store(), s.ag.History(), s.ag.View(), s.ag.View().Threshold
	o.Health, o.Trigger, o.Mark, o.Save, o.Compare = s.health, s.ag.Trigger, s.ag.Mark, s.ag.Save, s.ag.Compare
	o.Metrics, o.Temp, o.Version, o.Log = http.Handler(s.metrics), s.ag.Temp(), s.app.Version, warn
	s.web, err = web.New(o)
	return err
}

// openDoor hands the address of the page to the process of its door.
func (s *serving) openDoor(l net.Listener) (*door.Inside, *door.Outside, error) {
	store, err := filepath.Abs(s.ag.Store().Path())
	if err != nil {
		return nil, nil, err
	}
	return door.New(l.(*net.TCPListener), store, s.page.TLS)
}

// show serves the page and tells others until ctx ends.
func (s *serving) show(ctx context.Context, inside *door.Inside, outside *door.Outside) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var open error
	all.Go(func() {
		open = outside.Run(ctx, s.web.Log(), s.ag.Counts)
		cancel()
	})
	all.Go(func() { s.metrics.Run(ctx) })
	all.Go(func() { s.notify.Run(ctx) })
	if s.pushes != nil {
		all.Go(func() { s.pushes.Run(ctx) })
	}
	if s.upload != nil {
		all.Go(func() { s.upload.Run(ctx) })
	}
	err := s.web.Serve(ctx, inside)
	cancel()
	all.Wait()
	if open != nil {
		return open // why nothing comes from the door any more
	}
	return err
}

// changed tells others of an incident: with the first verdict that finds something, and at its end. Nobody is notified
// of one in which nothing was wrong.
func (s *serving) changed(in incidents.Incident) {
	s.metrics.Incident(in)
	over := in.State == incidents.StateJudged || in.State == incidents.StateFailed
	if !over && in.Verdict != verdict.Findings {
		return
	}
	diagnosis, _ := s.ag.Store().Diagnosis(in.ID) // none is sent where there is none
	s.notify.Send(notify.Of(in, diagnosis, addressOf(s.page)+"incidents/"+in.ID))
}

// traceID is the trace of a slow call; empty: it was not pushed.
func (s *serving) traceID(c recording.Call) string {
	if s.pushes == nil {
		return ""
	}
	return s.pushes.TraceID(c)
}

func (s *serving) deliveries() []metrics.Delivery {
	n := s.notify.Stats()
	out := []metrics.Delivery{{
		Channel: "notify", Sent: n.Sent, Failed: n.Failed, Dropped: n.Dropped, Bytes: n.Bytes, Queued: n.Queued,
		LastSuccess: n.LastSuccess, LastError: n.LastError,
	}}
	if s.pushes != nil {
		spans, pushes, minutes, events := s.pushes.Stats()
		out = append(out, pushed("otlp-traces", spans), pushed("otlp-metrics", pushes), pushed("otlp-minutes", minutes),
			pushed("otlp-events", events))
	}
	if s.upload != nil {
		out = append(out, pushed("recordings", s.upload.Stats()))
	}
	return out
}

func pushed(channel string, s delivery.Stats) metrics.Delivery {
	return metrics.Delivery{
		Channel: channel, Sent: s.Sent, Failed: s.Failed, Dropped: s.Dropped, Bytes: s.Bytes, Queued: s.Queued,
		LastSuccess: s.LastSuccess, LastError: s.LastError,
	}
}

func (s *serving) metricsHealth() metrics.Health {
	h := s.ag.Health()
	return metrics.Health{
		Watching: h.Watching, OverBudget: h.Cost.Over != "" || h.Cost.Sampled, CPUBudgetCores: h.Cost.CPUBudget,
		MemoryBudgetBytes: h.Cost.RSSBudget, HookCores: h.Cost.Hooks, CPUCores: h.Cost.CPU, MemoryBytes: h.Cost.RSS,
	}
}

// health is that of the agent as the page and /healthz have it.
func (s *serving) health() web.Health {
	h := s.ag.Health()
	out := web.Health{
		Status: web.Ok, Since: h.Since.UTC(), Problems: h.Problems,
		Cost: web.Cost{
			CPUShare: h.Cost.CPU, CPUBudget: h.Cost.CPUBudget, HooksShare: h.Cost.Hooks, RSSBytes: h.Cost.RSS,
			RSSBudgetBytes: h.Cost.RSSBudget, JudgingNs: h.Cost.Judging.Nanoseconds(), Reduced: h.Cost.Reduced,
		},
		Ring: web.Kept{From: h.Ring.From, To: h.Ring.To, Bytes: h.Ring.Bytes, Lost: h.Ring.Trouble},
		Disk: web.Disk{Bytes: h.DiskBytes, BudgetBytes: h.DiskBudget},
	}
	for _, watched := range h.Servers {
		w := web.Watched{Target: watched.Address, Found: watched.Found, State: "watched", Why: watched.Why}
		switch {
		case watched.Watched:
		case watched.Why == "":
			w.State = "starting"
		default:
			w.State = "unreachable"
		}
		out.Targets = append(out.Targets, w)
	}
	for _, b := range append(h.Unseen, notSeen(h.Missed)...) {
		out.Unseen = append(out.Unseen, web.BlindSpot{What: b.What, Why: b.Why, Enable: b.Enable})
	}
	switch {
	case !h.Watching:
		out.Status = web.Failed
	case len(h.Problems) > 0:
		out.Status = web.Degraded
	}
	return out
}

// notSeen is what was missed of what is watched, as blind spots.
func notSeen(missed []recording.Unseen) (out []recording.BlindSpot) {
	for _, u := range missed {
		out = append(out, recording.BlindSpot{What: u.What, Why: u.Why, Enable: u.Enable})
	}
	return out
}
