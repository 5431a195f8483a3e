package otlp

import (
	"context"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// Attributes that the semantic conventions have no name for.
const (
	clusterKey = attribute.Key("slowpath.cluster")
	whoseKey   = attribute.Key("slowpath.whose")  // users, slowpath
	processKey = attribute.Key("slowpath.client") // the calling process: "app[1234]"
	// for whom that runs: systemd's unit, the id of its container, the uid of its Kubernetes pod
	unitKey      = attribute.Key("slowpath.client.unit")
	containerKey = attribute.Key("slowpath.client.container")
	podKey       = attribute.Key("slowpath.client.pod")
	libraryKey   = attribute.Key("slowpath.client.library") // "redis-py 5.0.1"

	seqKey      = attribute.Key("slowpath.tcp.seq") // the sequence number of the byte after the request
	sideKey     = attribute.Key("slowpath.side")    // from which end it was seen: client, server, both
	requestKey  = attribute.Key("slowpath.request.size")
	replyKey    = attribute.Key("slowpath.reply.size")
	samplingKey = attribute.Key("slowpath.sampling.p")
	statesKey   = attribute.Key("slowpath.parts.states") // "server throttled"
	beginsKey   = attribute.Key("slowpath.parts.begins")
	lengthsKey  = attribute.Key("slowpath.parts.lengths")
	culpritsKey = attribute.Key("slowpath.parts.culprits") // what it waited for in each; absent: nothing is known
	culpritKey  = attribute.Key("slowpath.culprit")        // and in the longest part
)

// sampleEvery is the time of which a sample is taken, and incidentFactor how many times as many calls are sent of one
// while an incident is watched.
const (
	sampleEvery    = 10 * time.Second
	incidentFactor = 5
)

// lookAt takes the slow calls that came since the last time into the sample.
func (e *Exporter) lookAt() {
	if e.o.SpansPerMinute < 0 {
		return
	}
	calls, missed := e.o.View.SlowSince(e.number)
	e.spans.LeftOut(int(missed))
	for _, c := range calls {
		e.number = c.Number
		e.sample.add(sampled{c, e.idsOf(c.Call)})
	}
}

// batch is the spans of calls that ended before a time, and that were not sent yet.
type batch struct {
	spans []trace.ReadOnlySpan
	to    time.Time
}

// hasRing reports whether calls that a collector did not take can be read again.
func (e *Exporter) hasRing() bool {
	return e.o.Disk != nil && e.o.Disk.Calls != nil && e.o.SpansPerMinute >= 0
}

// sendCalls sends the sample, and begins the next one. While a collector is away, and until it has all calls before the
// sample, the sample is not sent: its calls are read from the ring when it is their turn.
func (e *Exporter) sendCalls(ctx context.Context) {
	e.lookAt()
	calls, threshold, left := e.sample.take(e.minute.Units(e.perMinute(e.o.InIncident())))
	from := e.sampledTo
	e.sampledTo = time.Now()
	if e.waiting == nil && (!e.hasRing() || !e.cursor.Calls.Before(from)) {
		e.spans.LeftOut(left)
		e.minute.Spend(float64(len(calls)))
		e.waiting = e.batchOf(calls, threshold, e.sampledTo)
	}
	for e.sendWaiting(ctx) && e.readRing(ctx) {
	}
}

// perMinute is how many calls may be sent of a minute.
func (e *Exporter) perMinute(inIncident bool) float64 {
	n := float64(max(e.o.SpansPerMinute, 0))
	if inIncident {
		n *= incidentFactor
	}
	return n
}

// sendWaiting sends the batch that waits, and reports whether the collector took it, or there was none. What is above
// the budget is left out.
func (e *Exporter) sendWaiting(ctx context.Context) (taken bool) {
	w := e.waiting
	if w == nil {
		return true
	}
	if e.hasRing() && e.spans.Rests() {
		return false
	}
	some := len(w.spans) > 0
	for taken = true; taken && len(w.spans) > 0; {
		now := w.spans[:min(len(w.spans), maxBatch)]
		if !e.spans.Budget.Allows() {
			e.spans.Over("are left out", len(w.spans))
			w.spans = nil
			break
		}
		if taken = e.spans.Send(len(now), func() error { return e.traces.ExportSpans(ctx, now) }); taken {
			w.spans = w.spans[len(now):]
		}
	}
	if !taken && e.hasRing() {
		e.spans.Queued(len(w.spans))
		return false
	}
	e.spans.LeftOut(max(len(w.spans)-maxBatch, 0)) // beside those that failed
	e.spans.Queued(0)
	e.waiting, e.cursor.Calls = nil, w.to
	if e.hasRing() && some {
		e.writeCursor()
	}
	return taken
}

// maxBatch is how many spans are sent at once.
const maxBatch = 128

// Bounds of what is read of the ring at once: how long a time, and by how much it overlaps with what was sent before,
// and will be, as calls are seen after they have ended. What is sent twice has the same ids.
const (
	ringStep    = time.Minute
	ringOverlap = 2 * time.Second
)

// readRing makes a batch of calls in the ring that were not sent, and reports whether there are such.
func (e *Exporter) readRing(ctx context.Context) bool {
	if !e.hasRing() || ctx.Err() != nil || !e.cursor.Calls.Before(e.sampledTo) {
		return false
	}
	from := e.cursor.Calls
	if kept := e.o.Disk.First(); kept.After(from) {
		from = kept
	}
	to := from.Add(ringStep)
	if to.After(e.sampledTo) {
		to = e.sampledTo
	}
	first, last := from.Add(-ringOverlap), to.Add(ringOverlap)
	calls, missed, err := e.o.Disk.Calls(ctx, first, last)
	if err != nil {
		return false
	}
	in := e.o.Disk.Store.List(incidents.Query{From: from, To: to, Limit: 1})
	most := int(math.Ceil(e.perMinute(len(in) > 0) * last.Sub(first).Minutes()))
	s := sample{most: most}
	for _, c := range calls {
		s.add(sampled{c, e.idsOf(c.Call)})
	}
	chosen, threshold, left := s.take(most)
	e.spans.LeftOut(left + int(missed))
	e.waiting = e.batchOf(chosen, threshold, to)
	return true
}

// batchOf makes spans of calls.
func (e *Exporter) batchOf(calls []sampled, threshold uint64, to time.Time) *batch {
	for _, c := range calls {
		e.call(c, threshold)
	}
	spans := e.ended.spans
	e.ended.spans = nil
	return &batch{spans, to}
}

// endedSpans keeps spans that have ended.
type endedSpans struct{ spans []trace.ReadOnlySpan }

// OnStart implements trace.SpanProcessor.
func (*endedSpans) OnStart(context.Context, trace.ReadWriteSpan) {}

// OnEnd implements trace.SpanProcessor.
func (e *endedSpans) OnEnd(s trace.ReadOnlySpan) { e.spans = append(e.spans, s) }

// Shutdown implements trace.SpanProcessor.
func (*endedSpans) Shutdown(context.Context) error { return nil }

// ForceFlush implements trace.SpanProcessor.
func (*endedSpans) ForceFlush(context.Context) error { return nil }

// call makes the span of a slow call, from when it was due. The client's end is a CLIENT span, whose child is the span
// of the server's end, which another agent may make: a SERVER span.
func (e *Exporter) call(s sampled, threshold uint64) {
	c := s.Call
	ctx := context.WithValue(context.Background(), madeKey{}, made{s.callIDs, tracestate(threshold)})
	kind := api.SpanKindClient
	if c.Side == recording.Server {
		kind = api.SpanKindServer
		ctx = api.ContextWithRemoteSpanContext(ctx, api.NewSpanContext(api.SpanContextConfig{
			TraceID: s.trace, SpanID: s.client, TraceFlags: api.FlagsSampled, Remote: true,
		}))
	}
	_, span := e.tracer.Start(ctx, text(c.Op), api.WithSpanKind(kind),
		api.WithTimestamp(time.Unix(0, c.IntendedNs)), api.WithAttributes(about(s)...),
		api.WithAttributes(runsFor(e.o.View.ProgramOf(c.Client))...),
		api.WithAttributes(parts(c, s.Segments)...),
		api.WithAttributes(samplingKey.Float64(1-float64(threshold)/fullRange)))
	if c.Error != "" {
		span.SetStatus(codes.Error, text(c.Error))
	}
	span.End(api.WithTimestamp(time.Unix(0, c.EndNs)))
	e.know(s.trace)
}

// about are the attributes of a call.
func about(s sampled) []attribute.KeyValue {
	c := s.Call
	out := append(ends(c), semconv.DBSystemNameRedis, semconv.DBOperationName(text(c.Op)),
		whoseKey.String(string(s.Whose)), requestKey.Int64(c.RequestBytes), replyKey.Int64(c.ReplyBytes))
	if c.Seq != 0 {
		out = append(out, sideKey.String(c.Side), seqKey.Int64(int64(c.Seq)))
	}
	if c.Client != "" {
		out = append(out, processKey.String(text(c.Client)))
	}
	if c.Error != "" {
		code, _, _ := strings.Cut(c.Error, " ")
		out = append(out, semconv.DBResponseStatusCode(text(code)), semconv.ErrorTypeKey.String(text(code)))
	}
	return out
}

// runsFor is for whom a process of this host runs, where that is known.
func runsFor(p recording.Program) (out []attribute.KeyValue) {
	for key, value := range map[attribute.Key]string{unitKey: p.Unit, containerKey: p.Container, podKey: p.Pod} {
		if value != "" {
			out = append(out, key.String(text(value)))
		}
	}
	return out
}

// parts are where the time of a call passed: arrays with one value for each part, at most 64. Times are in nanoseconds,
// and begin with the call.
func parts(c recording.Call, segments []recording.Segment) []attribute.KeyValue {
	if len(segments) == 0 {
		return nil
	}
	var states, culprits []string
	var begins, lengths []int64
	for _, s := range segments {
		states = append(states, text(s.Actor+" "+s.State))
		culprits = append(culprits, text(s.Culprit))
		begins, lengths = append(begins, s.FromNs-c.IntendedNs), append(lengths, s.ToNs-s.FromNs)
	}
	out := []attribute.KeyValue{
		statesKey.StringSlice(states), beginsKey.Int64Slice(begins), lengthsKey.Int64Slice(lengths),
	}
	if w := worst(segments); w.Culprit != "" {
		out = append(out, culpritsKey.StringSlice(culprits), culpritKey.String(text(w.Culprit)))
	}
	return out
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

// TraceID is the id of the trace of a slow call, 32 hexadecimal digits; empty if it was not made.
func (e *Exporter) TraceID(c recording.Call) string {
	id := e.idsOf(c).trace
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.exported[id] {
		return ""
	}
	return id.String()
}

// know remembers that a trace was made.
func (e *Exporter) know(id api.TraceID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.exported[id] = true
	e.order = append(e.order, id)
	if len(e.order) > maxExported {
		delete(e.exported, e.order[0])
		e.order = e.order[1:]
	}
}

// text makes what comes from servers and clients safe to show, and short.
func text(s string) string { return layout.Bound(layout.Clean(s), maxText) }
