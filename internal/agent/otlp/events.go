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

// Names of events. Each is one of an incident, and is sent again when it changes: of a host, an incident and a rank
// those with the highest version count.
const (
	rankKey = attribute.Key("slowpath.rank") // of a finding, or a change, within its incident

	incidentEvent = "slowpath.incident"
	findingEvent  = "slowpath.finding"
	changeEvent   = "slowpath.change"
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

// incidentRecords are an incident, the findings of its diagnosis (slowpath.diagnosis/v1, or empty), and what was
// changed before them.
func (e *Exporter) incidentRecords(in incidents.Incident, diagnosis []byte) []sdklog.Record {
	into := &emitted{}
	logger := sdklog.NewLoggerProvider(sdklog.WithResource(e.from), sdklog.WithProcessor(into),
		sdklog.WithAttributeCountLimit(64), sdklog.WithAttributeValueLengthLimit(maxText)).Logger("slowpath",
		log.WithInstrumentationVersion(e.o.Version), log.WithSchemaURL(semconv.SchemaURL))
	emit := func(name, body string, at time.Time, severity log.Severity, attributes ...attribute.KeyValue) {
		var r log.Record
		r.SetEventName(name)
		r.SetTimestamp(at)
		r.SetObservedTimestamp(in.Changed)
		r.SetSeverity(severity)
		r.SetBody(attribute.StringValue(text(body)))
		r.AddAttributes(attribute.String("slowpath.incident.id", in.ID),
			attribute.Int64("slowpath.incident.version", in.Changed.UnixNano()))
		r.AddAttributes(attributes...)
		logger.Emit(context.Background(), r)
	}
	severity := log.SeverityInfo
	switch {
	case in.State == incidents.StateFailed:
		severity = log.SeverityError
	case in.Verdict == verdict.Findings:
		severity = log.SeverityWarn
	}
	emit(incidentEvent, in.Summary, in.Start, severity, aboutIncident(in)...)
	var d verdict.Diagnosis
	if len(diagnosis) > maxDiagnosis || json.Unmarshal(diagnosis, &d) != nil {
		return into.records
	}
	for i, f := range d.Findings[:min(len(d.Findings), maxFindings)] {
		emit(findingEvent, f.Title, in.Start, log.SeverityWarn, append(aboutFinding(f), rankKey.Int(i))...)
		for k, c := range f.Changes[:min(len(f.Changes), maxChanges)] {
			emit(changeEvent, c.Text, c.Time, log.SeverityInfo, rankKey.Int(maxChanges*i+k),
				attribute.String("slowpath.cause", f.Cause), attribute.String("slowpath.change.kind", string(c.Kind)),
				attribute.String("server.address", text(c.Node)), texts("slowpath.change.by", c.By),
				attribute.Bool("slowpath.change.by_mechanism", c.ByMechanism))
		}
	}
	return into.records
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
