package otlp

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
)

// Names of events. Those of an incident are sent again when it changes: of a host, an incident and a rank those with
// the highest version count. Edges, and changes of no incident, have an id of their own: sent again they are the same.
const (
	rankKey  = attribute.Key("slowpath.rank") // of a finding, or a change, within its incident
	entryKey = attribute.Key("slowpath.entry.id")

	incidentEvent = "slowpath.incident"
	findingEvent  = "slowpath.finding"
	changeEvent   = "slowpath.change"
	edgeEvent     = "slowpath.edge"
)

// Bounds of what is sent of an incident: bytes of its diagnosis, its findings, the changes before each of them, and
// the nodes and callers.
const (
	maxDiagnosis = 32 << 20
	maxFindings  = 20
	maxChanges   = 10
	maxNames     = 50
)

// emitted keeps the records that its logger emits.
type emitted struct{ records []sdklog.Record }

// OnEmit implements sdklog.Processor.
func (e *emitted) OnEmit(_ context.Context, r *sdklog.Record) error {
	e.records = append(e.records, r.Clone())
	return nil
}

// Enabled implements sdklog.Processor.
func (*emitted) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// Shutdown implements sdklog.Processor.
func (*emitted) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdklog.Processor.
func (*emitted) ForceFlush(context.Context) error { return nil }

// events makes log records.
type events struct {
	emitted
	logger log.Logger
}

func (e *Exporter) newEvents() *events {
	out := &events{}
	out.logger = sdklog.NewLoggerProvider(sdklog.WithResource(e.from), sdklog.WithProcessor(&out.emitted),
		sdklog.WithAttributeCountLimit(64), sdklog.WithAttributeValueLengthLimit(maxText)).Logger("slowpath",
		log.WithInstrumentationVersion(e.o.Version), log.WithSchemaURL(semconv.SchemaURL))
	return out
}

// event is one that was at a time, and is known since another.
type event struct {
	name, body string
	at, known  time.Time
	severity   log.Severity
}

func (e *events) add(of event, attributes ...attribute.KeyValue) {
	var r log.Record
	r.SetEventName(of.name)
	r.SetTimestamp(of.at)
	r.SetObservedTimestamp(of.known)
	r.SetSeverity(of.severity)
	r.SetBody(attribute.StringValue(text(of.body)))
	r.AddAttributes(attributes...)
	e.logger.Emit(context.Background(), r)
}

// incident adds an incident, the findings of its diagnosis (slowpath.diagnosis/v1, or empty), and what was changed
// before them.
func (e *events) incident(in incidents.Incident, diagnosis []byte) {
	severity := log.SeverityInfo
	switch {
	case in.State == incidents.StateFailed:
		severity = log.SeverityError
	case in.Verdict == verdict.Findings:
		severity = log.SeverityWarn
	}
	of := func(rank int, attributes ...attribute.KeyValue) []attribute.KeyValue {
		return append(attributes, rankKey.Int(rank), attribute.String("slowpath.incident.id", in.ID),
			attribute.Int64("slowpath.incident.version", in.Changed.UnixNano()))
	}
	var d verdict.Diagnosis
	if len(diagnosis) > maxDiagnosis || json.Unmarshal(diagnosis, &d) != nil {
		d = verdict.Diagnosis{}
	}
	about := append(aboutIncident(in), attribute.String("slowpath.server", text(d.Target.Server)))
	e.add(event{incidentEvent, in.Summary, in.Start, in.Changed, severity}, of(0, about...)...)
	for i, f := range d.Findings[:min(len(d.Findings), maxFindings)] {
		e.add(event{findingEvent, f.Title, in.Start, in.Changed, log.SeverityWarn}, of(i, aboutFinding(f)...)...)
		for k, c := range f.Changes[:min(len(f.Changes), maxChanges)] {
			for _, seen := range d.Changes { // which has the node of one that is watched alone, too
				if seen.Text == c.Text && seen.Time.Equal(c.Time) {
					c.Node = seen.Node
				}
			}
			e.add(event{changeEvent, c.Text, c.Time, in.Changed, log.SeverityInfo}, of(maxChanges*i+k,
				append(aboutChange(incidents.Change{
					Kind: string(c.Kind), Node: c.Node, By: c.By, WithinNs: c.WithinNs,
				}), attribute.String("slowpath.cause", f.Cause),
					attribute.Bool("slowpath.change.by_mechanism", c.ByMechanism))...)...)
		}
	}
}

// entry adds an edge, or a change.
func (e *events) entry(of incidents.Entry) {
	known, id := time.Unix(0, of.At), entryKey.Int64(of.At)
	if c := of.Change; c != nil {
		e.add(event{changeEvent, c.Text, c.Time, known, log.SeverityInfo}, append(aboutChange(*c), id)...)
	}
	if g := of.Edge; g != nil {
		e.add(event{edgeEvent, g.Caller + " to " + g.Node, time.Unix(0, g.FromNs), known, log.SeverityInfo}, id,
			processKey.String(text(g.Caller)), attribute.String("server.address", text(g.Node)),
			libraryKey.String(text(g.Library)), unitKey.String(text(g.Unit)),
			containerKey.String(text(g.Container)), podKey.String(text(g.Pod)),
			attribute.Int64("slowpath.calls", g.Calls), slowKey.Int64(g.Slow),
			attribute.Int64("slowpath.lost.ns", g.LostNs), attribute.Int64("slowpath.edge.ns", g.ToNs-g.FromNs))
	}
}

func aboutChange(c incidents.Change) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("slowpath.change.kind", text(c.Kind)), attribute.String("server.address", text(c.Node)),
		texts("slowpath.change.by", c.By), attribute.Int64("slowpath.change.within_ns", c.WithinNs),
	}
}

func aboutIncident(in incidents.Incident) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("slowpath.incident.state", in.State), attribute.String("slowpath.trigger", text(in.Trigger)),
		attribute.String("slowpath.verdict", in.Verdict), attribute.String("slowpath.cause", in.Cause),
		attribute.Int64("slowpath.slow_calls", in.SlowCalls), attribute.Int64("slowpath.failed_calls", in.FailedCalls),
		attribute.String("server.address", text(in.Target)), texts("slowpath.nodes", in.Nodes),
		texts("slowpath.callers", in.Callers), texts("slowpath.other_causes", in.OtherCauses),
		attribute.Int64("slowpath.recording.size", in.RecordingBytes),
	}
	if !in.End.IsZero() {
		out = append(out, attribute.Int64("slowpath.incident.ns", in.End.Sub(in.Start).Nanoseconds()))
	}
	if in.Error != "" {
		out = append(out, attribute.String("error.message", text(in.Error)))
	}
	return out
}

func aboutFinding(f cause.Finding) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("slowpath.cause", f.Cause), attribute.String("slowpath.layer", f.Layer),
		attribute.Float64("slowpath.excess_share", f.ExcessShare),
		attribute.Float64("slowpath.confidence", f.Confidence),
		attribute.String("slowpath.grade", string(f.Grade)), attribute.Int("slowpath.slow_calls", f.SlowCalls),
		texts("slowpath.nodes", f.Nodes),
	}
	var processes, units, pods []string
	for _, c := range f.Culprits {
		processes, units, pods = append(processes, c.Process), append(units, c.Unit), append(pods, c.Pod)
	}
	if len(processes) > 0 {
		out = append(out, texts("slowpath.culprit.processes", processes), texts("slowpath.culprit.units", units),
			texts("slowpath.culprit.pods", pods))
	}
	if f.Because != "" {
		out = append(out, attribute.String("slowpath.because", f.Because))
	}
	if len(f.Evidence) > 0 {
		out = append(out, attribute.String("slowpath.evidence", text(f.Evidence[0].Text)))
	}
	if len(f.Fix) > 0 {
		out = append(out, attribute.String("slowpath.fix", text(f.Fix[0])))
	}
	return out
}

// texts is an attribute of several texts.
func texts(key string, all []string) attribute.KeyValue {
	out := make([]string, min(len(all), maxNames))
	for i := range out {
		out[i] = text(all[i])
	}
	return attribute.StringSlice(key, out)
}
