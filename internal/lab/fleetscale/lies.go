package main

import (
	"context"
	"fmt"
	"math"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricdata "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"slowpath/internal/manyhosts"
)

// lie is what an agent can say that is not so.
type lie struct {
	what   string
	shift  time.Duration
	span   func(*trace.Span)
	minute func(*metricdata.ExponentialHistogramDataPoint)
	tenant string
	taken  bool // it is within what clocks may be wrong
}

var allLies = []lie{
	{what: "times two days ahead", shift: 48 * time.Hour},
	{what: "times of 40 days ago", shift: -40 * 24 * time.Hour},
	{
		what: "negative durations and counts",
		span: func(s *trace.Span) { s.EndTimeUnixNano = s.StartTimeUnixNano - 1e9 },
		minute: func(d *metricdata.ExponentialHistogramDataPoint) {
			setInt(d.Attributes, "slowpath.slow_calls", -1000)
		},
	},
	{
		what: "huge durations and counts",
		span: func(s *trace.Span) { s.EndTimeUnixNano = math.MaxInt64 },
		minute: func(d *metricdata.ExponentialHistogramDataPoint) {
			d.Count = math.MaxInt64
			setInt(d.Attributes, "slowpath.slow_calls", math.MaxInt64)
		},
	},
	{what: "the tenant of others", tenant: "others", taken: true},
	{what: "a clock 23 h ahead", shift: 23 * time.Hour, taken: true},
}

func setInt(all []*common.KeyValue, key string, value int64) {
	for _, a := range all {
		if a.Key == key {
			a.Value = &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}
		}
	}
}

// lies sends what agents would that lie, each as a host of its own.
func (o *options) lies(ctx context.Context, s *stack, r *replay) error {
	conn, err := dial(r.to, r)
	if err != nil {
		return err
	}
	defer conn.Close()
	host := o.hosts[0]
	for i, l := range allLies {
		p := o.newPart(r.cells+i, 0, r.base.Add(l.shift).Sub(time.Unix(0, o.incident.from)))
		var sent int64
		for _, of := range o.incident.scripts {
			if of.host != host || of.Signal != traces && !of.minutes {
				continue
			}
			body, n, err := l.body(of, p)
			if err == nil {
				err = send(ctx, conn, token, of.Signal, body)
			}
			if err != nil {
				return err
			}
			sent += n
		}
		name := p.rename.Replace(host)
		if err := o.judgeLie(ctx, s, l, name, sent); err != nil {
			return err
		}
	}
	from, to, err := s.Span(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	o.check("with that clock a question without a time is still of the last day",
		from.Before(now.Add(-23*time.Hour)) && to.After(now), "%s to %s, and now it is %s",
		from.UTC().Format(time.DateTime), to.UTC().Format(time.DateTime), now.UTC().Format(time.DateTime))
	return o.refusals(ctx, conn)
}

// judgeLie says what became of what a liar sent.
func (o *options) judgeLie(ctx context.Context, s *stack, l lie, host string, sent int64) error {
	var kept, refused, foreign int64
	err := eventually(ctx, time.Minute, "the end of "+l.what, func() (bool, error) {
		r, err := s.Query(ctx, fmt.Sprintf("SELECT (SELECT count() FROM call_row FINAL WHERE host = '%[1]s') + "+
			"(SELECT count() FROM minute_row FINAL WHERE host = '%[1]s') AS kept, "+
			"(SELECT sum(refused) FROM refused WHERE host = '%[1]s') AS refused, "+
			"(SELECT count() FROM call_row WHERE host = '%[1]s' AND tenant <> '%[2]s') + "+
			"(SELECT count() FROM minute_row WHERE host = '%[1]s' AND tenant <> '%[2]s') AS foreign", host, tenant),
			manyhosts.Filter{})
		if err != nil {
			return false, err
		}
		of := func(column string) int64 { return r.Int(r.Values[0], column) }
		kept, refused, foreign = of("kept"), of("refused"), of("foreign")
		return kept+refused >= sent, nil
	})
	if err != nil {
		return err
	}
	if l.taken {
		o.check(l.what+": taken, with the gateway's tenant", kept == sent && foreign == 0,
			"%d of %d rows, %d of other tenants", kept, sent, foreign)
		return nil
	}
	o.check(l.what+": refused and counted", kept == 0 && refused == sent, "%d of %d refused, %d in the tables",
		refused, sent, kept)
	return nil
}

// body is a push as the liar would send it, with the number of spans or minutes in it.
func (l lie) body(of *script, p part) (body []byte, n int64, err error) {
	if body, err = of.body(p); err != nil {
		return nil, 0, err
	}
	var m proto.Message
	switch of.Signal {
	case traces:
		var t tracespb.ExportTraceServiceRequest
		m = &t
		if err := proto.Unmarshal(body, m); err != nil {
			return nil, 0, err
		}
		for _, r := range t.ResourceSpans {
			r.Resource.Attributes = append(r.Resource.Attributes, l.ofTenant()...)
			for _, scope := range r.ScopeSpans {
				n += int64(len(scope.Spans))
				for _, span := range scope.Spans {
					if l.span != nil {
						l.span(span)
					}
				}
			}
		}
	case metrics:
		var t metricspb.ExportMetricsServiceRequest
		m = &t
		if err := proto.Unmarshal(body, m); err != nil {
			return nil, 0, err
		}
		for _, r := range t.ResourceMetrics {
			r.Resource.Attributes = append(r.Resource.Attributes, l.ofTenant()...)
			for _, scope := range r.ScopeMetrics {
				for _, metric := range scope.Metrics {
					if metric.Name != "slowpath.minute" {
						continue
					}
					for _, d := range metric.GetExponentialHistogram().GetDataPoints() {
						n++
						if l.minute != nil {
							l.minute(d)
						}
					}
				}
			}
		}
	}
	body, err = proto.Marshal(m)
	return body, n, err
}

func (l lie) ofTenant() []*common.KeyValue {
	if l.tenant == "" {
		return nil
	}
	return []*common.KeyValue{{
		Key: "slowpath.tenant", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: l.tenant}},
	}}
}

// refusals checks what the Collector does not take at all.
func (o *options) refusals(ctx context.Context, conn *grpc.ClientConn) error {
	err := send(ctx, conn, "others", traces, nil)
	o.check("a wrong token", status.Code(err) == codes.Unauthenticated, "%s", status.Code(err))
	const most = 4 << 20 // max_recv_msg_size_mib
	var large tracespb.ExportTraceServiceRequest
	large.ResourceSpans = []*trace.ResourceSpans{{SchemaUrl: string(make([]byte, most))}}
	body, err := proto.Marshal(&large)
	if err != nil {
		return err
	}
	err = send(ctx, conn, token, traces, body)
	o.check("a push of more than 4 MiB", status.Code(err) == codes.ResourceExhausted, "%s", status.Code(err))
	return nil
}
