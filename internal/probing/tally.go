package probing

import (
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
	"slowpath/internal/source/probe"
)

// phaseNames in the order in which a fresh connection goes through them.
var phaseNames = []string{"dns", "connect", "tls", "handshake", "command"}

// figureNames are what is counted: whole calls on both kinds of connections, and the phases.
var figureNames = append([]string{probe.Kept, probe.Fresh}, phaseNames...)

// tally counts the calls to one target, in the running interval and in all.
type tally struct {
	mu              sync.Mutex
	address         string
	names           []string // of figures, in the order in which they are shown
	interval, whole *figures
	last            time.Duration // of the last call on the kept connection
	slow            slowCycles
}

// figures are the latencies in nanoseconds by name, and the errors.
type figures struct {
	histograms map[string]*hdrhistogram.Histogram
	errors     map[string]int
	unfinished int
	missed     map[string]int64 // calls that were due and not sent, by reason
	late       int64            // calls that slowpath itself delayed by noticedLate or more
	mostLate   time.Duration
}

// noticedLate is the delay by slowpath itself that is said: it is more than a busy host's.
const noticedLate = 100 * time.Millisecond

func newMeasured() *figures {
	f := &figures{
		histograms: map[string]*hdrhistogram.Histogram{}, errors: map[string]int{}, missed: map[string]int64{},
	}
	for _, name := range figureNames {
		f.histograms[name] = hdrhistogram.New(1000, int64(time.Hour), 3)
	}
	return f
}

func (f *figures) record(name string, ns int64) {
	if f.histograms[name] == nil {
		f.histograms[name] = hdrhistogram.New(1000, int64(time.Hour), 3)
	}
	_ = f.histograms[name].RecordValue(max(0, min(ns, int64(time.Hour)))) // in range
}

func newTally(address string) *tally {
	return &tally{address: address, names: figureNames, interval: newMeasured(), whole: newMeasured()}
}

// add counts a call with the time that a caller would have felt that always runs. One that had not come back at the end
// counts with the time it had waited by then, if that is more than the calls before it took: it is then known to be
// slower than they were.
func (t *tally) add(c recording.Call, felt time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := int64(felt)
	late := time.Duration(c.EndNs-c.IntendedNs) - felt
	for _, f := range []*figures{t.interval, t.whole} {
		if late >= noticedLate {
			f.late, f.mostLate = f.late+1, max(f.mostLate, late)
		}
		if c.Error == probe.Unfinished {
			f.unfinished++
			if ns < f.histograms[c.Conn].Max() {
				continue
			}
		} else if c.Error != "" {
			f.errors[c.Error]++
		}
		f.record(c.Conn, ns)
	}
	if c.Conn == probe.Kept {
		t.last = felt
	}
}

// miss counts calls that were due and not sent.
func (t *tally) miss(why string, calls int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interval.missed[why] += calls
	t.whole.missed[why] += calls
}

func (t *tally) phases(ps map[string]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, d := range ps {
		if d > 0 {
			t.interval.record(name, int64(d))
			t.whole.record(name, int64(d))
		}
	}
}

const (
	Schema     = "slowpath.probe/v1"
	ofInterval = "interval"
	total      = "total"
)

// probeRow is a document slowpath.probe/v1: the figures of one target.
type probeRow struct {
	Schema  string `json:"schema"`
	Of      string `json:"of"` // interval or total
	Address string `json:"address"`
	// kept, fresh: whole calls; dns, connect, tls, handshake, command: parts of fresh ones; of cycles: see names
	Phases     map[string]phaseStats `json:"phases"`
	Errors     map[string]int        `json:"errors"`
	Unfinished int                   `json:"unfinished"` // calls that had not come back when the probe ended
	Missed     map[string]int64      `json:"missed"`     // calls that were due and not sent, by reason
	Late       int64                 `json:"late"`       // calls that slowpath itself delayed, by noticedLate or more
	LateMaxNs  int64                 `json:"late_max_ns"`

	names []string // of Phases, in the order in which they are shown
	facts []string // more that is said below them
}

type phaseStats struct {
	Calls  int64 `json:"calls"`
	MinNs  int64 `json:"min_ns"`
	P50Ns  int64 `json:"p50_ns"`
	P99Ns  int64 `json:"p99_ns"`
	P999Ns int64 `json:"p999_ns"`
	MaxNs  int64 `json:"max_ns"`
}

// row gives the figures of the whole, or of the interval that ends with it.
func (t *tally) row(of string) probeRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.whole
	if of == ofInterval {
		f, t.interval = t.interval, newMeasured()
	}
	r := probeRow{
		Schema: Schema, Of: of, Address: t.address, Phases: map[string]phaseStats{}, Errors: f.errors,
		Unfinished: f.unfinished, Missed: maps.Clone(f.missed), Late: f.late, LateMaxNs: int64(f.mostLate),
		names: t.names, facts: t.facts(),
	}
	for name, h := range f.histograms {
		if h.TotalCount() > 0 {
			r.Phases[name] = phaseStats{
				h.TotalCount(), h.Min(), h.ValueAtQuantile(50), h.ValueAtQuantile(99),
				h.ValueAtQuantile(99.9), h.Max(),
			}
		}
	}
	return r
}
