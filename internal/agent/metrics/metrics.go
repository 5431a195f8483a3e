// Package metrics shows Prometheus what the agent saw: counters that never go back, histograms of all calls, what slow
// calls waited for, and what the watch itself costs and does not see. docs/metrics.md has all of them.
package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// Options of New. Only View is needed.
type Options struct {
	View    *live.View
	Version string
	// Health says how the agent is. It is asked at each scrape, and must not block.
	Health func() Health
	// Deliveries are what was sent elsewhere: metrics and spans by OTLP, notifications. Asked at each scrape.
	Deliveries func() []Delivery
	// TraceID is the id under which a slow call was pushed as a trace, 32 hexadecimal digits; empty: it was not.
	TraceID func(recording.Call) string
	// Commands and Callers are how many of them have series of their own; 0: DefaultCommands, DefaultCallers.
	Commands, Callers int
}

// Health is how the agent is.
type Health struct {
	Watching   bool    // at least one source runs
	OverBudget bool    // it left out a part of its work to keep its budget, or could not keep it
	CPUCores   float64 // CPU time of its processes per time, over the last minute; 0: not measured yet
	// MemoryBytes is the resident memory of its processes; 0: not measured yet.
	MemoryBytes int64
	// CPUBudgetCores is the CPU time that it may use per time: 0.01 is 1 % of a core; 0: no limit.
	CPUBudgetCores float64
	// MemoryBudgetBytes is how much memory it may use; 0: no limit.
	MemoryBudgetBytes int64
	// HookCores is the CPU time of the kernel programs per time; 0: not known.
	HookCores float64
}

// Delivery is how much was sent to one place.
type Delivery struct {
	Channel                string // otlp-traces, otlp-metrics, otlp-minutes, otlp-events, notify, recordings
	Sent, Failed, Dropped  int64  // pushes, spans, notifications, incidents; Dropped: by a bound, without a try
	Bytes                  int64  // on the wire
	Queued                 int64  // now
	LastSuccess, LastError time.Time
}

// Defaults of the numbers of names.
const (
	DefaultCommands = 30
	DefaultCallers  = 100
	maxCauses       = 100 // of incidents; the catalogue has fewer
)

// settle is how many seconds after a second is complete its calls are counted. The probe writes a second when its next
// call has ended, so that at a low rate a second comes late.
const settle = 10

// Metrics counts what a view sees. It is an http.Handler that serves them.
type Metrics struct {
	o        Options
	registry *prometheus.Registry
	handler  http.Handler
	started  time.Time

	mu       sync.Mutex
	next     int64  // the first second that is not counted yet
	number   uint64 // of the last slow call that was counted
	nodes    map[nodeKey]*nodeTotals
	commands *ranked
	callers  *ranked
	seen     []live.Caller // of the view, when their calls were counted last
	waits    map[waitKey]int64
	missed   int64 // slow calls that came faster than they were read
	causes   map[causeKey]int64
	judged   []string // the last incidents that were counted
	active   map[string]bool
}

type (
	nodeKey  struct{ node, whose string }
	waitKey  struct{ whose, actor, state string }
	causeKey struct{ cause, verdict string }
)

// New makes the metrics of a view. Run must run for them to be complete.
func New(o Options) *Metrics {
	m := &Metrics{
		o: o, started: time.Now(), registry: prometheus.NewRegistry(), nodes: map[nodeKey]*nodeTotals{},
		commands: newRanked(orDefault(o.Commands, DefaultCommands)),
		callers:  newRanked(orDefault(o.Callers, DefaultCallers)),
		waits:    map[waitKey]int64{}, causes: map[causeKey]int64{},
		active: map[string]bool{},
	}
	m.registry.MustRegister(m, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: 4, CoalesceGather: true, Timeout: 10 * time.Second,
		ErrorHandling: promhttp.ContinueOnError,
	})
	return m
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// ServeHTTP answers a scrape: as text, OpenMetrics or protobuf, as the request asks for.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Gatherer gives the same to others, such as to package otlp.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Run counts each second once, until the context ends. The view keeps minutes: a Run that is late loses nothing.
func (m *Metrics) Run(ctx context.Context) {
	seconds, end := m.o.View.Subscribe()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-seconds:
			m.count()
		}
	}
}

// Incident counts an incident once it is judged, or could not be. It may be called for each change of one.
func (m *Metrics) Incident(i incidents.Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := i.State == incidents.StateJudged || i.State == incidents.StateFailed
	if !done || i.End.IsZero() {
		if len(m.active) < 100 {
			m.active[i.ID] = true
		}
		return
	}
	delete(m.active, i.ID)
	for _, id := range m.judged {
		if id == i.ID {
			return
		}
	}
	m.judged = append(m.judged, i.ID)
	if len(m.judged) > 1000 {
		m.judged = append([]string(nil), m.judged[500:]...)
	}
	k := causeKey{label(i.Cause), label(i.Verdict)}
	if i.State == incidents.StateFailed {
		k.verdict = "failed"
	}
	if _, known := m.causes[k]; !known && len(m.causes) >= maxCauses {
		k.cause = other
	}
	m.causes[k]++
}
