//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"slowpath/internal/agent"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// serveParts are what shows the agent to others.
type serveParts struct {
	ag      *agent.Agent
	s       *serving
	log     *agent.Log
	web     *web.Server
	metrics *metrics.Metrics
	notify  *notify.Notifier
	pushes  *otlp.Exporter // nil: there is no collector
}

// receivers are those of --notify.
func (s *serveFlags) receivers() (out []notify.Receiver, err error) {
	for _, text := range s.notify {
		r, err := notify.Parse(text, s.notifyPlain)
		if err != nil {
			return nil, cli.Usagef("--notify: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

// tls reads the certificate of the page; nil: there is none.
func (s *serveFlags) tls() (*tls.Config, error) {
	switch {
	case s.web.cert == "" && s.web.key == "":
		return nil, nil
	case s.web.cert == "" || s.web.key == "":
		return nil, cli.Usagef("--tls-cert and --tls-key go together: give both, or none")
	}
	pair, err := tls.LoadX509KeyPair(s.web.cert, s.web.key)
	if err != nil {
		return nil, cli.Usagef("--tls-cert %s: %w; give a certificate and its key in PEM", s.web.cert, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// url is where a browser finds the page.
func (s *serveFlags) url() string {
	scheme, host := "http", s.listen
	if s.web.cert != "" {
		scheme = "https"
	}
	if name, port, err := net.SplitHostPort(s.listen); err == nil && (name == "" || net.ParseIP(name).IsUnspecified()) {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	if len(s.web.hostNames) > 0 {
		host = s.web.hostNames[0]
	}
	return scheme + "://" + host + "/"
}

// checkPage says whether the page may be at its address.
func (s *serving) checkPage() error {
	certificate, err := s.tls()
	if err != nil {
		return err
	}
	return usageOf(web.Check(web.Options{
		Listen: s.listen, HostNames: s.web.hostNames, Token: s.token, TLS: certificate, AllowWrites: s.web.allowWrites,
	}))
}

// listened puts the port of a listener in the place of 0, which is any.
func (s *serving) listened(l net.Listener) {
	host, port, err := net.SplitHostPort(s.listen)
	if _, got, badAddress := net.SplitHostPort(l.Addr().String()); err == nil && badAddress == nil && port == "0" {
		s.listen = net.JoinHostPort(host, got)
	}
}

// open makes the parts of an agent.
func (p *serveParts) open(ctx context.Context, certificate *tls.Config) (err error) {
	p.metrics = metrics.New(metrics.Options{
		View: p.ag.View(), Version: version, Health: p.metricsHealth, Deliveries: p.deliveries, TraceID: p.traceID,
	})
	if o := p.s.pushed; o != nil {
		o.View, o.Metrics, o.Log = p.ag.View(), p.metrics.Gatherer(), func(line string) { p.log.Warn("%s", line) }
		if p.pushes, err = otlp.New(ctx, *o); err != nil {
			return err
		}
	}
	p.notify = notify.New(notify.Options{Receivers: p.s.notified, Log: func(line string) { p.log.Warn("%s", line) }})
	p.web, err = web.New(web.Options{
		Listen: p.s.listen, HostNames: p.s.web.hostNames, Token: p.s.token, TLS: certificate,
		AllowWrites: p.s.web.allowWrites, Store: p.ag.Store(), History: p.ag.History(), View: p.ag.View(),
		Slow: p.ag.View().Threshold, Health: p.health, Trigger: p.ag.Trigger, Save: p.ag.Save, Compare: p.ag.Compare,
		Metrics: http.Handler(p.metrics), TempDir: p.ag.TempDir(), Version: version,
		Log: func(line string) { p.log.Warn("%s", line) },
	})
	return err
}

// run serves until ctx ends.
func (p *serveParts) run(ctx context.Context, l net.Listener) error {
	var all sync.WaitGroup
	all.Go(func() { p.metrics.Run(ctx) })
	all.Go(func() { p.notify.Run(ctx) })
	if p.pushes != nil {
		all.Go(func() { p.pushes.Run(ctx) })
	}
	defer all.Wait()
	return p.web.Serve(ctx, l)
}

// changed tells others of an incident: with the first verdict that finds something, and at its end. Nobody is notified
// of one in which nothing was wrong.
func (p *serveParts) changed(in incidents.Incident) {
	p.metrics.Incident(in)
	if p.pushes != nil && in.Verdict != "" {
		diagnosis, _ := p.ag.Store().Diagnosis(in.ID)
		p.pushes.Incident(in, diagnosis)
	}
	over := in.State == incidents.StateJudged || in.State == incidents.StateFailed
	if !over && in.Verdict != verdict.Findings {
		return
	}
	diagnosis, _ := p.ag.Store().Diagnosis(in.ID) // none is sent where there is none
	p.notify.Send(notify.Of(in, diagnosis, p.s.url()+"incidents/"+in.ID))
}

// traceID is the trace of a slow call; empty: it was not pushed.
func (p *serveParts) traceID(c recording.Call) string {
	if p.pushes == nil {
		return ""
	}
	return p.pushes.TraceID(c)
}

func (p *serveParts) deliveries() []metrics.Delivery {
	s := p.notify.Stats()
	out := []metrics.Delivery{{
		Channel: "notify", Sent: s.Sent, Failed: s.Failed, Dropped: s.Dropped, Bytes: s.Bytes, Queued: s.Queued,
		LastSuccess: s.LastSuccess, LastError: s.LastError,
	}}
	if p.pushes != nil {
		spans, pushes := p.pushes.Stats()
		out = append(out, pushed("otlp-traces", spans), pushed("otlp-metrics", pushes))
	}
	return out
}

func pushed(channel string, s otlp.Stats) metrics.Delivery {
	return metrics.Delivery{
		Channel: channel, Sent: s.Sent, Failed: s.Failed, Dropped: s.Dropped, Bytes: s.Bytes, Queued: s.Queued,
		LastSuccess: s.LastSuccess, LastError: s.LastError,
	}
}

func (p *serveParts) metricsHealth() metrics.Health {
	h := p.ag.Health()
	return metrics.Health{
		Watching: h.Watching, OverBudget: h.Cost.Over(), CPUBudgetCores: h.Cost.CPUBudget,
		MemoryBudgetBytes: h.Cost.RSSBudget, HookCores: h.Cost.Hooks,
	}
}

// health is that of the agent as the page and /healthz have it.
func (p *serveParts) health() web.Health {
	h := p.ag.Health()
	out := web.Health{
		Status: web.Ok, Since: h.Since.UTC(), Problems: h.Problems,
		Cost: web.Cost{
			CPUShare: h.Cost.CPU, CPUBudget: h.Cost.CPUBudget, HooksShare: h.Cost.Hooks, RSSBytes: h.Cost.RSS,
			RSSBudgetBytes: h.Cost.RSSBudget, Reduced: h.Cost.Reduced,
		},
		Ring: web.Kept{From: h.Ring.From, To: h.Ring.To, Bytes: h.Ring.Bytes, Lost: h.Ring.Trouble},
		Disk: web.Disk{Bytes: h.DiskBytes, BudgetBytes: h.DiskBudget},
	}
	for _, s := range h.Servers {
		w := web.Watched{Target: s.Address, Found: s.Found, State: "watched", Why: s.Why}
		switch {
		case s.Watched:
		case s.Why == "":
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
