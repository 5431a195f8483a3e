package otlp

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/verdict"
)

// maxDiagnosis bounds a diagnosis, in bytes, and maxFindings its findings that are sent.
const (
	maxDiagnosis = 32 << 20
	maxFindings  = 20
)

// Incident pushes an incident that was judged, as a span with an event for each finding. diagnosis is its
// slowpath.diagnosis/v1, or empty.
func (e *Exporter) Incident(i incidents.Incident, diagnosis []byte) {
	if i.End.IsZero() || e.o.SpansPerMinute < 0 {
		return
	}
	if !e.spans.budget.allows() {
		e.spans.drop(1)
		return
	}
	if !e.spans.queue(1) {
		return
	}
	_, span := e.tracerOf().Start(context.Background(), "incident", api.WithNewRoot(), api.WithTimestamp(i.Start),
		api.WithAttributes(incidentKey.String(i.ID), causeKey.String(text(i.Cause)), verdictKey.String(text(i.Verdict)),
			summaryKey.String(text(i.Summary)), slowCallsKey.Int64(i.SlowCalls), semconv.DBSystemNameRedis,
			semconv.ServerAddress(text(i.Target))))
	var d verdict.Diagnosis
	if len(diagnosis) <= maxDiagnosis && json.Unmarshal(diagnosis, &d) == nil {
		for _, f := range d.Findings[:min(len(d.Findings), maxFindings)] {
			about := []attribute.KeyValue{
				causeKey.String(f.Cause), summaryKey.String(text(f.Title)), shareKey.Float64(f.ExcessShare),
				confidenceKey.Float64(f.Confidence), slowCallsKey.Int(f.SlowCalls),
			}
			if len(f.Evidence) > 0 {
				about = append(about, evidenceKey.String(text(f.Evidence[0].Text)))
			}
			if len(f.Fix) > 0 {
				about = append(about, fixKey.String(text(f.Fix[0])))
			}
			span.AddEvent("finding", api.WithTimestamp(i.End), api.WithAttributes(about...))
		}
	}
	if i.State == incidents.StateFailed {
		span.SetStatus(codes.Error, text(i.Error))
	}
	span.End(api.WithTimestamp(i.End))
}
