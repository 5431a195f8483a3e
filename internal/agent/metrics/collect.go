package metrics

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"slowpath/internal/live"
	"slowpath/internal/recording"
	recorded "slowpath/internal/recording/series"
)

// maxUnseen is how many things that were missed have a series; the sources have fewer.
const maxUnseen = 40

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.count()
	s := series{out}
	m.collectSight(s) // these ask others, who may wait for m.mu
	m.collectHealth(s)
	m.collectDeliveries(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.collectNodes(s)
	m.collectNames(s)
	for _, k := range sortedKeys(m.waits, func(a, b waitKey) int {
		return cmp.Or(cmp.Compare(a.whose, b.whose), cmp.Compare(a.actor, b.actor), cmp.Compare(a.state, b.state))
	}) {
		s.put(waited, float64(m.waits[k])/1e9, k.whose, k.actor, k.state)
	}
	s.put(withoutParts, float64(m.missed))
	for _, k := range sortedKeys(m.causes, func(a, b causeKey) int {
		return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.verdict, b.verdict))
	}) {
		s.put(incidentCount, float64(m.causes[k]), k.cause, k.verdict)
	}
	s.put(incidentActive, float64(len(m.active)))
	s.put(countedUpTo, float64(m.next))
	s.put(build, 1, m.o.Version)
}

func (m *Metrics) collectDeliveries(s series) {
	if m.o.Deliveries == nil {
		return
	}
	for _, d := range m.o.Deliveries() {
		s.put(sent, float64(d.Sent), d.Channel)
		s.put(sendFailed, float64(d.Failed), d.Channel)
		s.put(sendDropped, float64(d.Dropped), d.Channel)
		s.put(sentBytes, float64(d.Bytes), d.Channel)
		s.put(queued, float64(d.Queued), d.Channel)
	}
}

func sortedKeys[K comparable, V any](in map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(in), compare)
}

func (m *Metrics) collectNodes(s series) {
	for _, k := range sortedKeys(m.nodes, func(a, b nodeKey) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.whose, b.whose))
	}) {
		t := m.nodes[k]
		s.put(calls, float64(t.calls), k.node, k.whose)
		s.put(slowCalls, float64(t.slow), k.node, k.whose)
		s.put(failedCalls, float64(t.failed), k.node, k.whose)
		if k.whose == string(live.Users) {
			s.put(seenAtServer, number(t.atServer), k.node)
		}
		s.out <- m.histogram(t, k)
	}
	s.put(slowThreshold, m.o.View.Threshold().Seconds())
}

func (m *Metrics) collectNames(s series) {
	m.commands.each(func(name string, t tally) {
		s.put(commandCalls, float64(t.calls), name)
		s.put(commandTime, float64(t.ns)/1e9, name)
		s.put(commandSlow, float64(t.slow), name)
	})
	m.callers.each(func(name string, t tally) {
		s.put(callerCalls, float64(t.calls), name)
		s.put(callerSlow, float64(t.slow), name)
		s.put(callerTime, float64(t.ns)/1e9, name)
	})
	s.put(folded, float64(m.commands.folded()), "command")
	s.put(folded, float64(m.callers.folded()), "caller")
}

// collectSight says what is seen, and what is not.
func (m *Metrics) collectSight(s series) {
	v := m.o.View
	for _, name := range []string{
		recording.SourceHost, recording.SourceProbe, recording.SourceProfile, recording.SourceServer,
		recording.SourceTap,
	} {
		var status recording.SourceStatus
		if json.Unmarshal([]byte(v.Meta(recording.MetaSource+name)), &status) != nil {
			continue
		}
		s.put(sourceUp, number(status.Used), name)
	}
	s.put(blind, float64(len(v.BlindSpots())))
	missed := v.Unseen()
	for _, u := range missed[:min(len(missed), maxUnseen)] {
		counted := "false"
		if u.Counted {
			counted = "true"
		}
		s.put(unseen, u.Share(), label(u.What), counted)
	}
	for _, node := range v.Nodes() {
		if us, _, ok := v.LastSample(recorded.OwnCommandsTime, node); ok {
			s.put(ownServerTime, recorded.OwnCommandsTime.Seconds(us), label(node))
		}
	}
	last := func(of recorded.Name) float64 {
		value, _, _ := v.LastSample(of, "")
		return value
	}
	if runs := last(recorded.TapHookRuns); runs > 0 {
		s.put(hookRun, last(recorded.TapHookTime)/runs/1e9)
	}
}

func (m *Metrics) collectHealth(s series) {
	if m.o.Health == nil {
		return
	}
	h := m.o.Health()
	s.put(watching, number(h.Watching))
	s.put(overBudget, number(h.OverBudget))
	s.put(cpuUsed, h.CPUCores)
	s.put(memoryUsed, float64(h.MemoryBytes))
	if h.CPUBudgetCores > 0 {
		s.put(cpuBudget, h.CPUBudgetCores)
	}
	if h.MemoryBudgetBytes > 0 {
		s.put(memoryBudget, float64(h.MemoryBudgetBytes))
	}
	if h.HookCores > 0 {
		s.put(hookCores, h.HookCores)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// series receives the series of a scrape.
type series struct{ out chan<- prometheus.Metric }

func (s series) put(f *family, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if f.kind == counter {
		kind = prometheus.CounterValue
	}
	one, err := prometheus.NewConstMetric(f.desc, kind, value, labels...)
	if err != nil {
		one = prometheus.NewInvalidMetric(f.desc, err)
	}
	s.out <- one
}

// bothHistograms is a classic and a native histogram of the same calls, with exemplars. The library has constant
// histograms of either kind, and none of both.
type bothHistograms struct {
	prometheus.Metric // native
	classic           []*dto.Bucket
}

func (m *Metrics) histogram(t *nodeTotals, k nodeKey) prometheus.Metric {
	native, err := prometheus.NewConstNativeHistogram(callDuration.desc, uint64(t.calls), t.seconds, t.native, nil, 0,
		nativeSchema, prometheus.DefNativeHistogramZeroThreshold, m.started, k.node, k.whose)
	if err != nil {
		return prometheus.NewInvalidMetric(callDuration.desc, err)
	}
	both := bothHistograms{Metric: native}
	sum := int64(0)
	for i, most := range append(slices.Clone(classic), inf) {
		sum += t.classic[i]
		b := &dto.Bucket{UpperBound: proto.Float64(most), CumulativeCount: proto.Uint64(uint64(sum))}
		if c := t.exemplars[i]; c != nil && t.classic[i] > 0 {
			b.Exemplar = m.exemplar(*c)
		}
		if i < len(classic) || b.Exemplar != nil { // +Inf is implied, but where it has an exemplar
			both.classic = append(both.classic, b)
		}
	}
	return both
}

// Write implements prometheus.Metric.
func (b bothHistograms) Write(out *dto.Metric) error {
	err := b.Metric.Write(out)
	if err == nil {
		out.Histogram.Bucket = b.classic
	}
	return err
}

// exemplar names a call. It has a trace where it was pushed as one.
func (m *Metrics) exemplar(s live.SlowCall) *dto.Exemplar {
	c := s.Call
	out := &dto.Exemplar{
		Value: proto.Float64(float64(s.Ns()) / 1e9), Timestamp: timestamppb.New(time.Unix(0, c.EndNs)),
	}
	add := func(name, value string) {
		if value != "" {
			out.Label = append(out.Label, &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)})
		}
	}
	add("client", short(c.Conn, 45))
	add("op", short(c.Op, 24))
	if m.o.TraceID != nil {
		add("trace_id", m.o.TraceID(c))
	}
	return out
}
