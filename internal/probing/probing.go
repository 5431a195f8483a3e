// Package probing is a steady probe of several hops that a user looks at: its live lines, tables and cycles.
package probing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/source/probe"
)

// probing is a probe of several hops that runs.
type probing struct {
	app     *cli.Program
	flags   *Options
	hops    []hop
	clock   *clock.Real
	sink    recording.Sink
	tallies []*tally
	failed  []error // by hop: why it could not be probed
	lines   int     // of intervals that were printed
	each    *cycles // nil: no line for each cycle is wanted
}

// run probes until the time is up, ctx ends, or nobody reads the output any more.
func (p *probing) run(ctx context.Context) error {
	ctx, cancel := source.Window(ctx, p.flags.Duration)
	defer cancel()
	p.begin()
	ended := p.start(ctx)
	err := p.show(ended)
	cancel()
	<-ended
	p.sink.SetMeta(recording.MetaEnd, strconv.FormatInt(p.clock.Now(), 10))
	if err := errors.Join(append(p.failed, err)...); err != nil {
		return err
	}
	return p.print(total)
}

// start probes every hop; the channel is closed when all have ended.
func (p *probing) start(ctx context.Context) <-chan struct{} {
	var wg sync.WaitGroup
	p.failed = make([]error, len(p.hops))
	for i, h := range p.hops {
		t := newTally(h.target.Addr())
		p.tallies = append(p.tallies, t)
		o := probe.Options{
			Target: h.target, Node: t.address, Clock: p.clock,
			Sink: p.sink, Rate: p.flags.perSecond,
			FreshRate: p.flags.freshPerSecond, HashTag: h.hashTag, PingOnly: h.noKeys, OnCall: t.add,
			OnPhases: t.phases, OnMissed: t.miss,
		}
		if p.each != nil {
			p.each.options(&o, i, t)
		}
		wg.Go(func() { p.failed[i] = probe.Watch(ctx, o) })
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	return ended
}

// show prints a live line each second and the latencies of each interval, until the probes have ended.
func (p *probing) show(ended <-chan struct{}) error {
	if p.each != nil {
		return p.each.show(ended)
	}
	defer p.app.ProgressDone()
	begin, live, interval := time.Now(), time.NewTicker(time.Second), time.NewTicker(p.flags.Interval)
	defer live.Stop()
	defer interval.Stop()
	for {
		select {
		case <-live.C:
			p.app.Progress("%s", liveLine(p.tallies, time.Since(begin), p.app.LiveWidth()))
		case <-interval.C:
			p.app.ProgressDone()
			if err := p.print(ofInterval); err != nil {
				return err
			}
		case <-ended:
			return nil
		}
	}
}

// print writes the latencies of the interval that ends, or of the whole.
func (p *probing) print(of string) error {
	out := p.app.Stdout
	for i, t := range p.tallies {
		r := t.row(of)
		var err error
		switch {
		case p.flags.AsJSON:
			err = layout.JSONLine(out, "a row", r)
		case of == total:
			err = r.table(out, p.title(i), p.lines > 0 || i > 0 || p.each != nil, p.app.Style())
		default:
			err = p.line(out, r)
		}
		if err != nil {
			return fmt.Errorf("writing the latencies: %w", err)
		}
	}
	return nil
}

// line writes the latencies of one interval, and the head of the columns now and then.
func (p *probing) line(out io.Writer, r probeRow) error {
	const screen = 20 // lines after which the head comes again
	narrow := p.app.Style().Width < intervalWidth
	text := r.line(time.Now(), len(p.hops) > 1, narrow)
	if p.lines%screen == 0 {
		text = intervalHead(len(p.hops) > 1, narrow) + text
	}
	p.lines++
	_, err := io.WriteString(out, text)
	return err
}

// title heads the table of a hop.
func (p *probing) title(i int) string {
	h := p.hops[i]
	title := h.target.Addr()
	if h.server != "" {
		title += ", " + h.server
	}
	if h.target.TLS != nil {
		title += ", TLS"
	}
	return title
}

// begin notes what a recording of a probe must say of itself.
func (p *probing) begin() {
	var addrs []string
	for _, h := range p.hops {
		addrs = append(addrs, h.target.Addr())
	}
	list, _ := json.Marshal(addrs) // strings always encode
	kind := "standalone"
	if p.hops[0].hashTag != "" || p.hops[0].noKeys {
		kind = "cluster"
	}
	for key, value := range map[string]string{
		recording.MetaVersion: p.app.Version, recording.MetaStart: strconv.FormatInt(p.clock.Now(), 10),
		recording.MetaTarget: addrs[0],
		recording.MetaNodes:  string(list), recording.MetaServer: p.hops[0].server, recording.MetaKind: kind,
		recording.MetaSlow:      "auto",
		recording.MetaProbeRate: strconv.FormatFloat(p.flags.perSecond, 'g', 4, 64),
	} {
		p.sink.SetMeta(key, value)
	}
	for _, name := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost,
		recording.SourceTap,
	} {
		s := recording.SourceStatus{Name: name, Used: name == recording.SourceProbe}
		if !s.Used {
			s.Why = "recorded by slowpath probe; slowpath record keeps all sources"
		}
		p.sink.SetMeta(recording.MetaSource+name, recording.Detail(s))
	}
}
