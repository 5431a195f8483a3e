package otlp

import (
	"context"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"slowpath/internal/agent/delivery"
)

// timeout is of one push. None is tried again by its exporter: what can be sent later is sent with the next push.
const timeout = 10 * time.Second

// spans makes the exporter of spans. Nothing is dialled before the first push.
func (e Endpoint) spans(ctx context.Context, c *delivery.Channel) (trace.SpanExporter, error) {
	if e.GRPC {
		o := []otlptracegrpc.Option{
			otlptracegrpc.WithEndpoint(e.Host), otlptracegrpc.WithCompressor("gzip"),
			otlptracegrpc.WithHeaders(e.Headers), otlptracegrpc.WithTimeout(timeout),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
			otlptracegrpc.WithDialOption(grpc.WithStatsHandler(countGRPC{c})),
		}
		if e.TLS == nil {
			o = append(o, otlptracegrpc.WithInsecure())
		} else {
			o = append(o, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(e.TLS)))
		}
		return otlptracegrpc.New(ctx, o...)
	}
	o := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(e.Host), otlptracehttp.WithURLPath(e.Path + "/v1/traces"),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithHeaders(e.Headers),
		otlptracehttp.WithTimeout(timeout), otlptracehttp.WithHTTPClient(e.client(c)),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
	}
	if e.TLS == nil {
		o = append(o, otlptracehttp.WithInsecure())
	}
	return otlptracehttp.New(ctx, o...)
}

// metrics makes the exporter of metrics.
func (e Endpoint) metrics(ctx context.Context, c *delivery.Channel) (metric.Exporter, error) {
	if e.GRPC {
		o := []otlpmetricgrpc.Option{
			otlpmetricgrpc.WithEndpoint(e.Host), otlpmetricgrpc.WithCompressor("gzip"),
			otlpmetricgrpc.WithHeaders(e.Headers), otlpmetricgrpc.WithTimeout(timeout),
			otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}),
			otlpmetricgrpc.WithDialOption(grpc.WithStatsHandler(countGRPC{c})),
		}
		if e.TLS == nil {
			o = append(o, otlpmetricgrpc.WithInsecure())
		} else {
			o = append(o, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(e.TLS)))
		}
		return otlpmetricgrpc.New(ctx, o...)
	}
	o := []otlpmetrichttp.Option{
		otlpmetrichttp.WithEndpoint(e.Host), otlpmetrichttp.WithURLPath(e.Path + "/v1/metrics"),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression), otlpmetrichttp.WithHeaders(e.Headers),
		otlpmetrichttp.WithTimeout(timeout), otlpmetrichttp.WithHTTPClient(e.client(c)),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}),
	}
	if e.TLS == nil {
		o = append(o, otlpmetrichttp.WithInsecure())
	}
	return otlpmetrichttp.New(ctx, o...)
}

// logs makes the exporter of events.
func (e Endpoint) logs(ctx context.Context, c *delivery.Channel) (sdklog.Exporter, error) {
	if e.GRPC {
		o := []otlploggrpc.Option{
			otlploggrpc.WithEndpoint(e.Host), otlploggrpc.WithCompressor("gzip"),
			otlploggrpc.WithHeaders(e.Headers), otlploggrpc.WithTimeout(timeout),
			otlploggrpc.WithRetry(otlploggrpc.RetryConfig{}),
			otlploggrpc.WithDialOption(grpc.WithStatsHandler(countGRPC{c})),
		}
		if e.TLS == nil {
			o = append(o, otlploggrpc.WithInsecure())
		} else {
			o = append(o, otlploggrpc.WithTLSCredentials(credentials.NewTLS(e.TLS)))
		}
		return otlploggrpc.New(ctx, o...)
	}
	o := []otlploghttp.Option{
		otlploghttp.WithEndpoint(e.Host), otlploghttp.WithURLPath(e.Path + "/v1/logs"),
		otlploghttp.WithCompression(otlploghttp.GzipCompression), otlploghttp.WithHeaders(e.Headers),
		otlploghttp.WithTimeout(timeout), otlploghttp.WithHTTPClient(e.client(c)),
		otlploghttp.WithRetry(otlploghttp.RetryConfig{}),
	}
	if e.TLS == nil {
		o = append(o, otlploghttp.WithInsecure())
	}
	return otlploghttp.New(ctx, o...)
}

// client is one that counts, and follows no redirect: what is sent is for the collector that was named.
func (e Endpoint) client(c *delivery.Channel) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: countHTTP{c, &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: e.Dial, TLSClientConfig: e.TLS, TLSHandshakeTimeout: timeout,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * time.Minute,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// countHTTP counts the bodies of requests, and notices that one is refused for good.
type countHTTP struct {
	*delivery.Channel
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c countHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = &countBody{ReadCloser: r.Body, channel: c.Channel}
	}
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil && (response.StatusCode == http.StatusBadRequest ||
		response.StatusCode == http.StatusRequestEntityTooLarge) {
		c.Refuses()
	}
	return response, err
}

type countBody struct {
	io.ReadCloser
	channel *delivery.Channel
}

func (b *countBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.channel.Wrote(n)
	return n, err
}

// countGRPC counts the messages of calls, as they are on the wire, and notices that one is refused for good.
type countGRPC struct{ *delivery.Channel }

// HandleRPC implements stats.Handler.
func (c countGRPC) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.OutPayload:
		c.Wrote(s.WireLength)
	case *stats.End:
		if status.Code(s.Error) == codes.InvalidArgument {
			c.Refuses()
		}
	}
}

// TagRPC implements stats.Handler.
func (countGRPC) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (countGRPC) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (countGRPC) HandleConn(context.Context, stats.ConnStats) {}

// metricExporter is an exporter within a channel.
type metricExporter struct {
	metric.Exporter
	*delivery.Channel
}

// Export implements metric.Exporter.
func (e metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	e.Send(1, func() error { return e.Exporter.Export(ctx, rm) })
	return nil
}
