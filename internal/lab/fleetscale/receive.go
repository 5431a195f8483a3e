package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // as agents send
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

// receiver writes what agents push into a recording.
type receiver struct {
	mu  sync.Mutex
	to  *pushWriter
	err error
}

// receive takes what agents push to an address, until the context ends.
func receive(ctx context.Context, address, path string, out io.Writer) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	r := &receiver{}
	if r.to, err = createPushes(path); err != nil {
		return err
	}
	s := grpc.NewServer(grpc.StatsHandler(wireSize{}))
	tracespb.RegisterTraceServiceServer(s, tracesIn{receiver: r})
	metricspb.RegisterMetricsServiceServer(s, metricsIn{receiver: r})
	logspb.RegisterLogsServiceServer(s, logsIn{receiver: r})
	began := make(chan os.Signal, 1)
	signal.Notify(began, syscall.SIGUSR1)
	defer signal.Stop(began)
	var serving sync.WaitGroup
	serving.Go(func() { err = s.Serve(l) })
	fmt.Fprintln(out, "listening on", l.Addr())
	for ctx.Err() == nil {
		select {
		case <-began:
			r.add(push{Signal: incident})
		case <-ctx.Done():
		}
	}
	s.Stop()
	serving.Wait()
	fmt.Fprintf(out, "%d pushes, %d bytes\n", r.to.pushes, r.to.bytes)
	return errors.Join(err, r.err, r.to.close())
}

func (r *receiver) add(p push) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.At = time.Now().UnixNano()
	r.err = errors.Join(r.err, r.to.add(p))
}

func (r *receiver) take(ctx context.Context, signal string, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	wire, _ := ctx.Value(wireKey{}).(*int)
	r.add(push{Signal: signal, Wire: *wire, Body: body})
	return nil
}

type tracesIn struct {
	tracespb.UnimplementedTraceServiceServer
	*receiver
}

// Export implements tracespb.TraceServiceServer.
func (r tracesIn) Export(ctx context.Context, m *tracespb.ExportTraceServiceRequest) (
	*tracespb.ExportTraceServiceResponse, error,
) {
	return &tracespb.ExportTraceServiceResponse{}, r.take(ctx, traces, m)
}

type metricsIn struct {
	metricspb.UnimplementedMetricsServiceServer
	*receiver
}

// Export implements metricspb.MetricsServiceServer.
func (r metricsIn) Export(ctx context.Context, m *metricspb.ExportMetricsServiceRequest) (
	*metricspb.ExportMetricsServiceResponse, error,
) {
	return &metricspb.ExportMetricsServiceResponse{}, r.take(ctx, metrics, m)
}

type logsIn struct {
	logspb.UnimplementedLogsServiceServer
	*receiver
}

// Export implements logspb.LogsServiceServer.
func (r logsIn) Export(ctx context.Context, m *logspb.ExportLogsServiceRequest) (
	*logspb.ExportLogsServiceResponse, error,
) {
	return &logspb.ExportLogsServiceResponse{}, r.take(ctx, logs, m)
}

// wireSize counts the bytes of a request on the wire.
type wireSize struct{}

type wireKey struct{}

// TagRPC implements stats.Handler.
func (wireSize) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, wireKey{}, new(int))
}

// HandleRPC implements stats.Handler.
func (wireSize) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		*ctx.Value(wireKey{}).(*int) += in.WireLength
	}
}

// TagConn implements stats.Handler.
func (wireSize) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (wireSize) HandleConn(context.Context, stats.ConnStats) {}
