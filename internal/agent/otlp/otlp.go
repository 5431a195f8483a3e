// Package otlp pushes to an OpenTelemetry collector what the agent saw: its metrics, slow calls as spans that say where
// their time passed, minutes of calls as histograms, and incidents with their findings as events. How much is sent is
// bounded, and a collector that is away holds up nobody.
package otlp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"

	"slowpath/internal/agent/delivery"
	"slowpath/internal/live"
	"slowpath/internal/source/hostfs"
)

// Options of New.
type Options struct {
	Endpoint Endpoint
	View     *live.View
	Metrics  prometheus.Gatherer // nil: none are pushed
	Disk     *Disk               // nil: no minutes and no incidents are sent
	Version  string
	// Cluster is the name of what this host belongs to. Both ends of a call are one trace where it is the same.
	Cluster string
	// InIncident reports whether an incident is watched: five times as many spans are sent then. nil: never.
	InIncident func() bool
	// Log receives one line when something begins to go wrong, and when it works again; nil: nobody.
	Log func(string)
	// Interval is between two pushes of metrics; 0: DefaultInterval.
	Interval time.Duration
	// SpansPerMinute is of how many slow calls spans are made at most; 0: DefaultSpansPerMinute, below 0: no traces.
	SpansPerMinute int
	// BytesPerDay is how much is sent at most, half of it spans and half of it metrics, minutes and events together; 0:
	// DefaultBytesPerDay, below 0: without a bound.
	BytesPerDay int64
}

// Defaults, and bounds that have no option.
const (
	DefaultInterval       = time.Minute
	MinInterval           = 5 * time.Second
	DefaultSpansPerMinute = 200 // of calls
	DefaultBytesPerDay    = 20 << 20
	maxExported           = 4096 // calls whose trace is known
	maxText               = 400  // bytes of an attribute
)

// Validate says in one line what cannot be.
func (o Options) Validate() error {
	switch {
	case o.Interval != 0 && o.Interval < MinInterval:
		return errors.New("otlp: --otlp-interval is below 5s; metrics change once per second: use 10s or more")
	case o.BytesPerDay > 0 && o.BytesPerDay < 1<<20:
		return errors.New("otlp: --otlp-bytes-per-day is below 1 MB, which is less than a day of metrics")
	}
	return nil
}

// Exporter pushes to one collector.
type Exporter struct {
	o      Options
	tracer api.Tracer
	ended  endedSpans // of tracer
	traces trace.SpanExporter
	meter  *metric.MeterProvider // nil: no metrics
	from   *resource.Resource
	logs   sdklog.Exporter // of events; nil without Disk
	rows   metric.Exporter // of minutes; nil without Disk
	cursor cursor

	spans   *delivery.Channel
	pushes  *delivery.Channel // of metrics
	minutes *delivery.Channel
	events  *delivery.Channel

	minute *delivery.Budget // of spans
	salt   [16]byte         // of ids that nobody else makes
	number uint64           // of the last slow call that was looked at
	sample sample
	// sampledTo is when the sample began, and waiting what was not sent yet; nil: nothing.
	sampledTo time.Time
	waiting   *batch

	mu       sync.Mutex
	exported map[api.TraceID]bool
	order    []api.TraceID // of exported

	saying sync.Mutex
	said   time.Time // when the last error of the SDK was logged
}

// New makes an exporter. Nothing is sent, and nobody is dialled, before Run.
func New(ctx context.Context, o Options) (*Exporter, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	half := delivery.Daily(float64(o.BytesPerDay) / 2)
	about := func(what string, kept bool) *delivery.Channel {
		return &delivery.Channel{Options: delivery.Options{
			Name: "otlp", What: what, To: o.Endpoint.String(), Kept: kept, Limit: "--otlp-bytes-per-day", Budget: half,
			Log: o.Log,
		}}
	}
	e := &Exporter{
		o: o, exported: map[api.TraceID]bool{}, sample: sample{most: max(o.SpansPerMinute, 0) * incidentFactor},
		spans: about("spans", o.Disk != nil && o.Disk.Calls != nil), minute: delivery.NewBudget(),
	}
	half = delivery.Daily(float64(o.BytesPerDay) / 2)
	e.pushes, e.minutes, e.events = about("metrics", false), about("minutes", true), about("events", true)
	_, _ = rand.Read(e.salt[:]) // never fails
	otel.SetErrorHandler(otel.ErrorHandlerFunc(e.internal))
	var err error
	if e.traces, err = o.Endpoint.spans(ctx, e.spans); err != nil {
		return nil, err
	}
	e.from = e.resource(ctx)
	e.tracer = trace.NewTracerProvider(trace.WithResource(e.from), trace.WithIDGenerator(fromCall{}),
		trace.WithSampler(fromCall{}), trace.WithSpanProcessor(&e.ended), trace.WithRawSpanLimits(trace.SpanLimits{
			AttributeValueLengthLimit: maxText, AttributeCountLimit: 64,
		})).Tracer("slowpath", api.WithInstrumentationVersion(o.Version), api.WithSchemaURL(semconv.SchemaURL))
	if o.Disk != nil {
		if e.logs, err = o.Endpoint.logs(ctx, e.events); err != nil {
			return nil, err
		}
		if e.rows, err = o.Endpoint.metrics(ctx, e.minutes); err != nil {
			return nil, err
		}
		e.readCursor()
	}
	if o.Metrics == nil {
		return e, nil
	}
	metrics, err := o.Endpoint.metrics(ctx, e.pushes)
	if err != nil {
		return nil, err
	}
	e.meter = metric.NewMeterProvider(metric.WithResource(e.from), metric.WithReader(metric.NewPeriodicReader(
		metricExporter{metrics, e.pushes}, metric.WithInterval(o.Interval), metric.WithTimeout(2*timeout),
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(o.Metrics))))))
	return e, nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.InIncident == nil {
		o.InIncident = func() bool { return false }
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.SpansPerMinute == 0 {
		o.SpansPerMinute = DefaultSpansPerMinute
	}
	if o.BytesPerDay == 0 {
		o.BytesPerDay = DefaultBytesPerDay
	}
	return o
}

// internal receives what the SDK says of itself. What is lost is counted elsewhere.
func (e *Exporter) internal(err error) {
	e.saying.Lock()
	defer e.saying.Unlock()
	if now := time.Now(); now.Sub(e.said) > time.Minute {
		e.said = now
		e.o.Log("otlp: " + text(err.Error()))
	}
}

// resource is what sends: this agent, its host, and what OTEL_RESOURCE_ATTRIBUTES says, such as the pod and the cloud.
func (e *Exporter) resource(ctx context.Context) *resource.Resource {
	from := []attribute.KeyValue{semconv.ServiceName("slowpath"), semconv.ServiceVersion(e.o.Version)}
	if e.o.Cluster != "" {
		from = append(from, clusterKey.String(text(e.o.Cluster)))
	}
	if all := hostfs.Addresses(); len(all) > 0 {
		from = append(from, semconv.HostIP(all...))
	}
	// what cannot be found out, such as the id of a host without /etc/machine-id, is left out
	r, _ := resource.New(ctx, resource.WithHost(), resource.WithHostID(), resource.WithAttributes(from...),
		resource.WithFromEnv())
	host, _ := r.Set().Value(semconv.HostIDKey)
	name, _ := r.Set().Value(semconv.HostNameKey)
	data := ""
	if e.o.Disk != nil {
		data = e.o.Disk.Folder.Path() // a host may have several agents
	}
	id := uuid(strings.Join([]string{e.o.Cluster, host.AsString(), name.AsString(), data}, "\n"))
	if merged, err := resource.Merge(resource.NewSchemaless(semconv.ServiceInstanceID(id)), r); err == nil {
		return merged
	}
	return r
}

// uuid is one that follows from a text (RFC 9562, version 8).
func uuid(text string) string {
	b := sha256.Sum256([]byte(text))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// lastPush is how long what waits is sent when the agent ends.
const lastPush = 3 * time.Second

// Run pushes until the context ends; then it sends what waits, for three seconds at most.
func (e *Exporter) Run(ctx context.Context) {
	seconds, end := e.o.View.Subscribe()
	defer end()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	e.sampledTo = time.Now()
	for {
		select {
		case <-ctx.Done():
			e.close()
			return
		case <-seconds:
			e.lookAt()
		case <-tick.C:
			e.send(ctx)
		}
	}
}

// send sends what there is but for the metrics.
func (e *Exporter) send(ctx context.Context) {
	e.sendCalls(ctx)
	if e.o.Disk != nil {
		e.sendDisk(ctx)
	}
}

func (e *Exporter) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastPush)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		e.send(ctx)
		_ = e.traces.Shutdown(ctx)
		if e.o.Disk != nil {
			_, _ = e.logs.Shutdown(ctx), e.rows.Shutdown(ctx)
		}
	})
	if e.meter != nil {
		both.Go(func() { _ = e.meter.Shutdown(ctx) }) // what could not be sent is counted
	}
	done := make(chan struct{})
	go func() { both.Wait(); close(done) }()
	select { // a push that has begun waits for its own timeout
	case <-done:
	case <-ctx.Done():
	}
}

// Stats are the numbers of spans, pushes of metrics, minutes and events, in this order.
func (e *Exporter) Stats() (spans, metrics, minutes, events delivery.Stats) {
	return e.spans.Numbers(), e.pushes.Numbers(), e.minutes.Numbers(), e.events.Numbers()
}
