package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"slowpath/internal/recording"
)

// callIDs are the ids of a call's trace, and of its spans at both ends. Both ends of a connection know the client's
// address and the sequence number of the byte after the request, so that both make the same ids.
type callIDs struct {
	trace          api.TraceID
	client, server api.SpanID
}

// idsOf makes the ids of a call. One without recording.CallID has ids that only this agent makes.
func (e *Exporter) idsOf(c recording.Call) (ids callIDs) {
	sum, ok := recording.CallID(e.o.Cluster, c)
	if !ok {
		sum = sha256.Sum256(fmt.Appendf(e.salt[:], "%s %s %s %d %d", c.Node, c.Conn, c.Op, c.IntendedNs, c.EndNs))
	}
	copy(ids.trace[:], sum[:])
	copy(ids.client[:], sum[16:])
	copy(ids.server[:], sum[24:])
	return ids
}

// fullRange is one more than the highest randomness.
const fullRange = 1 << 56

// randomness is what OpenTelemetry's consistent sampling compares with a threshold: the last 7 bytes of the trace's id.
// A trace is kept if it is the threshold or more.
func randomness(id api.TraceID) uint64 { return binary.BigEndian.Uint64(id[8:]) & (fullRange - 1) }

// tracestate says with which threshold a trace was sampled: https://opentelemetry.io/docs/specs/otel/trace/
// tracestate-handling/.
func tracestate(threshold uint64) (s api.TraceState) {
	digits := strings.TrimRight(fmt.Sprintf("%014x", threshold), "0")
	if digits == "" {
		digits = "0"
	}
	s, _ = api.ParseTraceState("ot=th:" + digits) // it is always one
	return s
}

// made is what a span of a call gets from its call, by the context.
type made struct {
	callIDs
	state api.TraceState
}

type madeKey struct{}

// fromCall gives spans of calls their ids and their state.
type fromCall struct{}

// NewIDs implements trace.IDGenerator: of the client's end.
func (fromCall) NewIDs(ctx context.Context) (api.TraceID, api.SpanID) {
	m, _ := ctx.Value(madeKey{}).(made)
	return m.trace, m.client
}

// NewSpanID implements trace.IDGenerator: of the server's end, whose parent is that of the client.
func (fromCall) NewSpanID(ctx context.Context, _ api.TraceID) api.SpanID {
	m, _ := ctx.Value(madeKey{}).(made)
	return m.server
}

// ShouldSample implements trace.Sampler. What is sent was chosen before.
func (fromCall) ShouldSample(p trace.SamplingParameters) trace.SamplingResult {
	m, _ := p.ParentContext.Value(madeKey{}).(made)
	return trace.SamplingResult{Decision: trace.RecordAndSample, Tracestate: m.state}
}

// Description implements trace.Sampler.
func (fromCall) Description() string { return "slowpath" }
