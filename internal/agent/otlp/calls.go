package otlp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// Attributes that the semantic conventions have no name for.
const (
	whoseKey      = attribute.Key("slowpath.whose")  // users, slowpath
	processKey    = attribute.Key("slowpath.client") // the calling process: "app[1234]"
	actorKey      = attribute.Key("slowpath.actor")
	stateKey      = attribute.Key("slowpath.state")
	culpritKey    = attribute.Key("slowpath.culprit") // what it waited for
	culpritNsKey  = attribute.Key("slowpath.culprit_ns")
	incidentKey   = attribute.Key("slowpath.incident")
	causeKey      = attribute.Key("slowpath.cause")
	verdictKey    = attribute.Key("slowpath.verdict")
	summaryKey    = attribute.Key("slowpath.summary")
	shareKey      = attribute.Key("slowpath.excess_share")
	confidenceKey = attribute.Key("slowpath.confidence")
	slowCallsKey  = attribute.Key("slowpath.slow_calls")
	fixKey        = attribute.Key("slowpath.fix")
	evidenceKey   = attribute.Key("slowpath.evidence")
)

// slowCalls makes spans of the slow calls that came since the last time, as many as the budgets allow.
func (e *Exporter) slowCalls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls, missed := e.o.View.SlowSince(e.number)
	e.left(int(missed))
	for _, c := range calls {
		e.number = c.Number
		spans := 1 + len(c.Segments)
		switch {
		case e.o.SpansPerMinute < 0 || !e.minute.take(float64(spans)):
			e.left(spans)
		case !e.spans.budget.allows():
			e.spans.drop(spans)
		case e.spans.queue(spans):
			e.call(c)
		}
	}
}

// left counts spans that were not made.
func (e *Exporter) left(spans int) {
	e.spans.mu.Lock()
	defer e.spans.mu.Unlock()
	e.spans.stats.Dropped += int64(spans)
}

// call makes the trace of a slow call: the call from when it was due, in it where its time passed.
func (e *Exporter) call(s live.SlowCall) {
	c := s.Call
	id := e.ids.of(c)
	ctx := context.WithValue(context.Background(), traceIDKey{}, id)
	attributes := append(ends(c), semconv.DBSystemNameRedis, semconv.DBOperationName(text(c.Op)),
		whoseKey.String(string(s.Whose)))
	if c.Client != "" {
		attributes = append(attributes, processKey.String(text(c.Client)))
	}
	if w := worst(s.Segments); w.Culprit != "" {
		attributes = append(attributes, culpritKey.String(text(w.Culprit)), culpritNsKey.Int64(w.ToNs-w.FromNs))
	}
	if c.Error != "" {
		code, _, _ := strings.Cut(c.Error, " ")
		attributes = append(attributes, semconv.DBResponseStatusCode(text(code)),
			semconv.ErrorTypeKey.String(text(code)))
	}
	ctx, span := e.tracerOf().Start(ctx, text(c.Op), api.WithNewRoot(), api.WithSpanKind(api.SpanKindClient),
		api.WithTimestamp(time.Unix(0, c.IntendedNs)), api.WithAttributes(attributes...))
	if c.Error != "" {
		span.SetStatus(codes.Error, text(c.Error))
	}
	for _, p := range s.Segments {
		part := []attribute.KeyValue{actorKey.String(p.Actor), stateKey.String(p.State)}
		if p.Culprit != "" {
			part = append(part, culpritKey.String(text(p.Culprit)))
		}
		_, child := e.tracerOf().Start(ctx, p.Actor+" "+p.State, api.WithTimestamp(time.Unix(0, p.FromNs)),
			api.WithAttributes(part...))
		child.End(api.WithTimestamp(time.Unix(0, p.ToNs)))
	}
	span.End(api.WithTimestamp(time.Unix(0, c.EndNs)))
	e.know(id)
}

// ends are the addresses of both ends.
func ends(c recording.Call) (out []attribute.KeyValue) {
	if host, port, ok := split(c.Node); ok {
		out = append(out, semconv.ServerAddress(host), semconv.ServerPort(port))
	} else if c.Node != "" {
		out = append(out, semconv.ServerAddress(text(c.Node)))
	}
	if host, port, ok := split(c.Conn); ok {
		out = append(out, semconv.ClientAddress(host), semconv.ClientPort(port))
	}
	return out
}

func split(address string) (host string, port int, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.Atoi(text)
	return host, port, err == nil && host != ""
}

// worst is the longest segment in which a call waited for something.
func worst(segments []recording.Segment) (w recording.Segment) {
	for _, s := range segments {
		if s.Culprit != "" && s.ToNs-s.FromNs > w.ToNs-w.FromNs {
			w = s
		}
	}
	return w
}

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

// TraceID is the id of the trace of a slow call, 32 hexadecimal digits; empty if it was not made.
func (e *Exporter) TraceID(c recording.Call) string {
	id := e.ids.of(c).String()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.exported[id] {
		return ""
	}
	return id
}

// know remembers that a trace was made. e.mu is held.
func (e *Exporter) know(id api.TraceID) {
	e.exported[id.String()] = true
	e.order = append(e.order, id.String())
	if len(e.order) > maxExported {
		delete(e.exported, e.order[0])
		e.order = e.order[1:]
	}
}

// ids gives the trace of a call an id that follows from the call, so that metrics can name it, too.
type ids struct{ salt [16]byte }

type traceIDKey struct{}

func newIDs() *ids {
	g := &ids{}
	_, _ = rand.Read(g.salt[:]) // never fails
	return g
}

func (g *ids) of(c recording.Call) (id api.TraceID) {
	sum := sha256.Sum256(fmt.Appendf(g.salt[:], "%s %s %s %d %d", c.Node, c.Conn, c.Op, c.IntendedNs, c.EndNs))
	copy(id[:], sum[:])
	return id
}

// NewIDs implements trace.IDGenerator.
func (g *ids) NewIDs(ctx context.Context) (api.TraceID, api.SpanID) {
	id, ok := ctx.Value(traceIDKey{}).(api.TraceID)
	if !ok {
		_, _ = rand.Read(id[:])
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements trace.IDGenerator.
func (*ids) NewSpanID(context.Context, api.TraceID) (id api.SpanID) {
	for binary.BigEndian.Uint64(id[:]) == 0 {
		_, _ = rand.Read(id[:])
	}
	return id
}

// text makes what comes from servers and clients safe to show, and short.
func text(s string) string { return layout.Bound(layout.Clean(s), maxText) }
