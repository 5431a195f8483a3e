package results

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/report/layout"
)

// Load writes the result of a load for a person: how fast, how late, how the latencies spread, and what one must know
// to read that.
func Load(w io.Writer, r *bench.Result, s layout.Style) error {
	p := newPage(s)
	p.loadHead(r)
	p.checks(r.Checks)
	p.loadLimit(r)
	p.loadLatency(r)
	if len(r.Ops) > 1 {
		p.loadOps(r.Ops)
	}
	if err := p.spectrum(r); err != nil {
		return err
	}
	p.loadFacts(r)
	p.replay(r.Replay)
	for _, n := range r.Notes {
		p.Gap()
		p.Paragraph("", "", n, layout.None)
	}
	return p.To(w, "the result")
}

// loadHead says what was done, and how fast it went.
func (p *page) loadHead(r *bench.Result) {
	s := r.Settings
	facts := []string{r.Target.Address}
	if r.Target.Server != "" {
		facts = append(facts, r.Target.Server)
	}
	facts = append(facts, s.Loop+" loop"+p.rateAsked(r), format.Count(s.Connections, "connection"))
	if s.Pipeline > 1 {
		how := "in flight on each"
		if s.PipelineMode == "batch" {
			how = "in a batch on each"
		}
		facts = append(facts, fmt.Sprintf("%d %s", s.Pipeline, how))
	}
	facts = append(facts, format.Count(s.Threads, "thread"))
	if s.PerCall {
		facts = append(facts, "a connection for each call")
	}
	if s.ReconnectEvery > 0 {
		facts = append(facts, "each opened again after "+format.Count(s.ReconnectEvery, "call"))
	}
	if s.Pool > 0 {
		facts = append(facts, fmt.Sprintf("a pool that %s share", format.Count(s.PoolWorkers, "worker")))
	}
	if s.BusyPoll {
		facts = append(facts, "busy polling")
	}
	p.Facts("", facts, layout.Dim)
	p.Gap()
	ended := ""
	if r.Interrupted {
		ended = ", ended early"
	}
	p.Paragraph("", "", fmt.Sprintf("%s requests per second (%s in %s%s)", format.Thousands(r.RequestsPerSecond),
		format.Thousands(r.Requests), format.Duration(int64(r.Seconds*1e9)), ended), layout.Bold)
}

func (p *page) rateAsked(r *bench.Result) string {
	if r.Schedule == nil {
		return ""
	}
	arrivals := r.Settings.Arrivals
	if r.Replay != nil {
		arrivals = paceOf(r.Replay)
	}
	return fmt.Sprintf(" at %s, %s", format.Rate(r.Schedule.PerSecond), arrivals)
}

// Columns of latencies: a label, and numbers of nine columns each.
const latencyLabel, latencyColumn = 22, 9

// loadLatency prints the percentiles; from the intended time and from the send where these differ.
func (p *page) loadLatency(r *bench.Result) {
	var rows [][]string
	if r.Latency.HDR == r.Service.HDR && r.Settings.Loop == bench.Closed {
		rows = append(rows, p.latencyRow("latency", r.Latency))
	} else {
		rows = append(rows, p.latencyRow("from intended time", r.Latency))
		rows = append(rows, p.latencyRow("from send", r.Service))
	}
	if r.PoolWait != nil {
		rows = append(rows, p.latencyRow("waiting for the pool", *r.PoolWait))
	}
	if r.Delivery != nil {
		rows = append(rows, p.latencyRow("to subscribers", *r.Delivery))
	}
	for _, phase := range []string{"dns", "connect", "tls", "handshake"} {
		if l, ok := r.Dials[phase]; ok && opens(r) {
			rows = append(rows, p.latencyRow(phase, l))
		}
	}
	head := []string{"", "P50", "P90", "P99", "P99.9", "P99.99", "MAX"}
	p.Gap()
	if p.Style.Width < latencyLabel+latencyColumn*(len(head)-1) {
		p.Folded(head, rows)
		return
	}
	p.Line(p.In(layout.Dim, latencyLine(head)))
	for _, row := range rows {
		p.Line(latencyLine(row))
	}
}

// opens: the connections that the load opened in its course are its subject, or a part of what it suffered.
func opens(r *bench.Result) bool {
	s := r.Settings
	return s.PerCall || s.ReconnectEvery > 0 || s.ColdStart || r.Connections.Lost > 0
}

func (p *page) latencyRow(label string, l bench.Latency) []string {
	row := []string{label}
	for _, ns := range []int64{l.P50Ns, l.P90Ns, l.P99Ns, l.P999Ns, l.P9999Ns, l.MaxNs} {
		row = append(row, p.time(l, ns))
	}
	return row
}

// latencyLine is a row in columns.
func latencyLine(row []string) string {
	line := layout.Pad(row[0], latencyLabel)
	for _, cell := range row[1:] {
		line += layout.PadLeft(cell, latencyColumn)
	}
	return line
}

// time prints a latency, or that there is none.
func (p *page) time(l bench.Latency, ns int64) string {
	if l.Calls == 0 {
		return "-"
	}
	return p.Text(format.Duration(ns))
}

// opsColumns is the width of the table of loadOps.
const opsColumns = 80

// loadOps prints a line per op of a mix.
func (p *page) loadOps(ops []bench.Op) {
	p.Gap()
	widths := []int{10, 9, 9, 9, 9, 9, 6, 6}
	line := func(name string, cells ...string) string {
		s := layout.Pad(p.Shorten(name, 12), 13)
		for i, c := range cells {
			s += layout.PadLeft(c, widths[i])
		}
		return s
	}
	head := []string{"", "REQUESTS", "PER S", "P50", "P99", "P99.9", "MAX", "ERR", "MISS"}
	var rows [][]string
	for _, o := range ops {
		l := o.Latency
		rows = append(rows, []string{
			p.Text(o.Op), format.Compact(o.Requests), format.Compact(int64(o.RequestsPerSecond + 0.5)),
			p.time(l, l.P50Ns), p.time(l, l.P99Ns), p.time(l, l.P999Ns), p.time(l, l.MaxNs),
			format.Compact(o.Errors), format.Compact(o.Misses),
		})
	}
	if p.Style.Width < opsColumns {
		p.Folded(head, rows)
		return
	}
	p.Line(p.In(layout.Dim, line(head[0], head[1:]...)))
	for _, row := range rows {
		p.Line(line(row[0], row[1:]...))
	}
}

// loadFacts prints what else was counted.
func (p *page) loadFacts(r *bench.Result) {
	p.Gap()
	if len(r.Errors) > 0 {
		p.Paragraph("errors: ", "        ", countsText(r.Errors), layout.Alarm)
	}
	if n := r.Routing; n != nil {
		p.Paragraph("nodes: ", "       ", countsText(n.Nodes), layout.None)
		if len(n.Retried) > 0 {
			p.Paragraph("sent again: ", "            ", countsText(n.Retried), layout.None)
		}
	}
	var facts []string
	if r.Misses > 0 {
		facts = append(facts, fmt.Sprintf("%s reads missed", format.Thousands(r.Misses)))
	}
	if r.Settings.Subscribers > 0 {
		facts = append(facts, fmt.Sprintf("%s messages delivered to %s", format.Thousands(r.Delivered),
			format.Count(r.Settings.Subscribers, "subscriber")))
	}
	if r.TimedOut > 0 {
		facts = append(facts, format.Count(r.TimedOut, "call")+" timed out")
	}
	if len(r.Mismatches) > 0 {
		p.Paragraph("wrong replies: ", "               ", countsText(r.Mismatches), layout.Alarm)
	}
	if c := r.Connections; c.Lost > 0 {
		facts = append(facts, fmt.Sprintf("%s lost, %d made again", format.Count(c.Lost, "connection"),
			c.Reconnected))
	}
	if s := r.Schedule; s != nil {
		facts = append(facts, fmt.Sprintf("intended schedule kept within %s (p99), %s (max)",
			format.Duration(s.LateP99Ns),
			format.Duration(s.LateMaxNs)))
	}
	g := r.Generator
	facts = append(facts, fmt.Sprintf("generator: %s CPU s per million requests, %s system calls per request",
		format.Digits(g.CPUSecondsPerMillion), format.Digits(g.SystemCallsPerRequest)))
	p.Facts("", facts, layout.None)
}

// countsText lists what was counted, the most frequent first.
func countsText(errors map[string]int64) string {
	kinds := make([]string, 0, len(errors))
	for k := range errors {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if d := errors[b] - errors[a]; d != 0 {
			return int(max(-1, min(1, d)))
		}
		return strings.Compare(a, b)
	})
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%s × %s", format.Thousands(errors[k]), layout.OneLine(k))
	}
	return strings.Join(kinds, "; ")
}

// LoadJSON writes the result of a load by the contract slowpath.bench/v1, in the same form.
func LoadJSON(w io.Writer, r *bench.Result) error { return layout.JSON(w, "the result", r) }
