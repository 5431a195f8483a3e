package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/probe"
	"slowpath/internal/recording"
)

// phaseNames in the order in which a call goes through them.
var phaseNames = []string{"kept", "fresh", "dns", "connect", "tls", "handshake"}

// tally counts the calls to one target: per phase, in the running interval and in all.
type tally struct {
	mu              sync.Mutex
	address         string
	interval, total map[string]*hdrhistogram.Histogram // nanoseconds
	errors          map[string]int                     // since the start
	last            recording.Call
}

func newTally(address string) *tally {
	t := &tally{address: address, interval: map[string]*hdrhistogram.Histogram{}, total: map[string]*hdrhistogram.Histogram{}, errors: map[string]int{}}
	for _, p := range phaseNames {
		t.interval[p], t.total[p] = hdrhistogram.New(1000, int64(time.Hour), 3), hdrhistogram.New(1000, int64(time.Hour), 3)
	}
	return t
}

func (t *tally) add(c recording.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record(c.Conn, c.EndNs-c.IntendedNs)
	if c.Error != "" {
		t.errors[c.Error]++
	}
	if c.Conn == probe.Kept {
		t.last = c
	}
}

func (t *tally) phases(ps map[string]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, d := range ps {
		if d > 0 {
			t.record(name, int64(d))
		}
	}
}

func (t *tally) record(phase string, ns int64) {
	ns = min(ns, int64(time.Hour))
	_ = t.interval[phase].RecordValue(ns) // in range by the line above
	_ = t.total[phase].RecordValue(ns)
}

// probeRow is a document slowpath.probe/v1: the figures of one target.
type probeRow struct {
	Schema  string                `json:"schema"`
	Of      string                `json:"of"` // interval or total
	Address string                `json:"address"`
	Phases  map[string]phaseStats `json:"phases"` // kept, fresh: whole calls; dns, connect, tls, handshake: parts of fresh ones
	Errors  map[string]int        `json:"errors"` // since the start
}

type phaseStats struct {
	Calls int64 `json:"calls"`
	MinNs int64 `json:"min_ns"`
	P50Ns int64 `json:"p50_ns"`
	P99Ns int64 `json:"p99_ns"`
	MaxNs int64 `json:"max_ns"`
}

func (t *tally) row(of string) probeRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	hs := t.total
	if of == "interval" {
		hs = t.interval
	}
	r := probeRow{Schema: "slowpath.probe/v1", Of: of, Address: t.address, Phases: map[string]phaseStats{}, Errors: map[string]int{}}
	for name, h := range hs {
		if h.TotalCount() == 0 {
			continue
		}
		r.Phases[name] = phaseStats{h.TotalCount(), h.Min(), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.Max()}
		if of == "interval" {
			h.Reset()
		}
	}
	for e, n := range t.errors {
		r.Errors[e] = n
	}
	return r
}

// line is one interval as redis-cli --latency-history would print it, with what that leaves out.
func (r probeRow) line() string {
	k, f := r.Phases["kept"], r.Phases["fresh"]
	return fmt.Sprintf("%s  kept: %d calls  min %s  p50 %s  p99 %s  max %s   fresh: %d  p50 %s  max %s%s", r.Address, k.Calls, ms(k.MinNs), ms(k.P50Ns), ms(k.P99Ns), ms(k.MaxNs),
		f.Calls, ms(f.P50Ns), ms(f.MaxNs), r.errorText())
}

func (r probeRow) errorText() string {
	n := 0
	for _, c := range r.Errors {
		n += c
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("   errors: %d", n)
}

// table prints the totals of a target, a row per phase.
func (r probeRow) table(w io.Writer, head bool) {
	width := max(24, len(r.Address))
	if head {
		fmt.Fprintf(w, "%-*s %-10s %7s %9s %9s %9s %9s\n", width, "TARGET", "PHASE", "CALLS", "MIN", "P50", "P99", "MAX")
	}
	for _, name := range phaseNames {
		p, ok := r.Phases[name]
		if !ok {
			continue
		}
		label := name
		if name == "kept" || name == "fresh" {
			label = strings.ToUpper(name[:1]) + name[1:]
		}
		fmt.Fprintf(w, "%-*s %-10s %7d %9s %9s %9s %9s\n", width, r.Address, label, p.Calls, ms(p.MinNs), ms(p.P50Ns), ms(p.P99Ns), ms(p.MaxNs))
	}
	for e, n := range r.Errors {
		fmt.Fprintf(w, "%-*s %d × %s\n", width, r.Address, n, e)
	}
}

// liveLine is the line that a terminal shows while the probe runs.
func liveLine(ts []*tally, since time.Duration) string {
	var parts []string
	for _, t := range ts {
		t.mu.Lock()
		h := t.total["kept"]
		parts = append(parts, fmt.Sprintf("%s  now %s  p50 %s  p99 %s  max %s (%d calls)", t.address, ms(t.last.EndNs-t.last.IntendedNs), ms(h.ValueAtQuantile(50)),
			ms(h.ValueAtQuantile(99)), ms(h.Max()), h.TotalCount()))
		t.mu.Unlock()
	}
	return fmt.Sprintf("%4.0fs  %s", since.Seconds(), strings.Join(parts, " | "))
}

// ms prints nanoseconds as milliseconds with enough digits for 0.05 ms.
func ms(ns int64) string { return fmt.Sprintf("%.2fms", float64(ns)/1e6) }
