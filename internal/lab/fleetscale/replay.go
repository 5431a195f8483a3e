package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// methods are those of OTLP over gRPC.
var methods = map[string]string{
	traces:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	logs:    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// As agents do: how long a push may take, and the pauses after one that failed.
const (
	pushTime = 10 * time.Second
	minPause = 10 * time.Second
	maxPause = time.Minute
)

// replay is many agents.
type replay struct {
	recorded
	cells int
	laps  int
	base  time.Time // when their first lap begins, as they say
	paced bool      // each push has its time; false: as fast as they are taken
	began time.Time
	// incidents is of how many cells one has an incident in its first lap.
	incidents int
	to        string
	// skew is by how much the clock of a host is wrong; nil: not at all.
	skew func(host string, cell int) time.Duration

	slots                      chan struct{} // of what is under way, where it is not paced
	sent, failed, lost, giveUp atomic.Int64
	wire                       atomic.Int64 // bytes
}

// run replays all, and ends when all that agents keep was taken.
func (r *replay) run(ctx context.Context) error {
	r.slots, r.began = make(chan struct{}, 64), time.Now()
	var all sync.WaitGroup
	errs := make(chan error, r.cells*len(r.hosts))
	for cell := range r.cells {
		turns := r.turns(cell, r.laps, r.base, r.hasIncident(cell))
		for _, host := range r.hosts {
			all.Go(func() { errs <- r.agent(ctx, host, turns) })
		}
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("after %d pushes that were taken and %d tries that failed: %w; -limit is how long it "+
				"may take", r.sent.Load(), r.failed.Load(), err)
		}
	}
	return nil
}

func (r *replay) hasIncident(cell int) bool { return cell%r.incidents == 0 }

// expected are the rows that all of it makes.
func (r *replay) expected() map[string]tally {
	out := map[string]tally{}
	with := (r.cells + r.incidents - 1) / r.incidents
	for _, some := range []struct {
		cells    int
		incident bool
	}{{with, true}, {r.cells - with, false}} {
		for table, n := range tallies(r.turns(0, r.laps, r.base, some.incident)) {
			sum := out[table]
			out[table] = tally{sum.rows + n.rows*int64(some.cells), sum.sum + n.sum*int64(some.cells)}
		}
	}
	return out
}

// agent is one of them, with a connection of its own. Its metrics do not wait for what it keeps.
func (r *replay) agent(ctx context.Context, host string, turns []turn) error {
	conn, err := dial(r.to, r)
	if err != nil {
		return err
	}
	defer conn.Close()
	var kept, once error
	var both sync.WaitGroup
	both.Go(func() { kept = r.pushes(ctx, conn, host, turns, true) })
	both.Go(func() { once = r.pushes(ctx, conn, host, turns, false) })
	both.Wait()
	return errors.Join(kept, once)
}

// pushes sends what a host keeps until it is taken, or the rest.
func (r *replay) pushes(ctx context.Context, conn *grpc.ClientConn, host string, turns []turn, kept bool) error {
	for _, t := range turns {
		if r.skew != nil {
			t.shift += int64(r.skew(host, t.cell))
		}
		begin := r.began.Add(time.Duration(t.lap) * r.length)
		for _, s := range t.scripts {
			if s.host != host || s.kept() != kept {
				continue
			}
			if r.paced {
				due := begin.Add(time.Duration(s.At - t.from)).Add(phase(s, t.cell))
				if err := until(ctx, due); err != nil {
					return err
				}
			}
			if err := r.push(ctx, conn, s, t.part); err != nil {
				return err
			}
		}
	}
	return nil
}

// phase is when an agent sends what others send at the same time: it sends metrics each minute since its start, and
// looks for all else each ten seconds.
func phase(s *script, cell int) time.Duration {
	h := fnv.New32a()
	fmt.Fprint(h, s.host, cell)
	every := 10 * time.Second
	if !s.kept() {
		every = time.Minute
	}
	return time.Duration(h.Sum32()) % every
}

func until(ctx context.Context, due time.Time) error {
	t := time.NewTimer(time.Until(due))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// push sends what an agent keeps until it is taken, and metrics once.
func (r *replay) push(ctx context.Context, conn *grpc.ClientConn, s *script, p part) error {
	if !r.paced {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
	}
	body, err := s.body(p)
	if err != nil {
		return err
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := send(ctx, conn, token, s.Signal, body)
		switch {
		case err == nil:
			r.sent.Add(1)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case status.Code(err) == codes.InvalidArgument:
			r.giveUp.Add(1)
			return nil
		}
		if r.failed.Add(1); !s.kept() {
			r.lost.Add(1)
			return nil
		}
		if err := until(ctx, time.Now().Add(pause)); err != nil {
			return err
		}
	}
}

// token is what the Collector lets in.
const token = "fleet-scale"

func send(ctx context.Context, conn *grpc.ClientConn, token, signal string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	var reply []byte
	return conn.Invoke(ctx, methods[signal], &body, &reply, grpc.ForceCodec(encoded{}), grpc.UseCompressor("gzip"))
}

func dial(to string, count stats.Handler) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(count), grpc.WithReadBufferSize(0), grpc.WithWriteBufferSize(4<<10))
}

// encoded is the codec of messages that are encoded.
type encoded struct{}

var errNotEncoded = errors.New("the message is not encoded")

// Marshal implements encoding.Codec.
func (encoded) Marshal(v any) ([]byte, error) {
	if b, ok := v.(*[]byte); ok {
		return *b, nil
	}
	return nil, errNotEncoded
}

// Unmarshal implements encoding.Codec.
func (encoded) Unmarshal(b []byte, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return errNotEncoded
	}
	*to = bytes.Clone(b)
	return nil
}

// Name implements encoding.Codec.
func (encoded) Name() string { return "proto" }

// HandleRPC implements stats.Handler.
func (r *replay) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok {
		r.wire.Add(int64(out.WireLength))
	}
}

// TagRPC implements stats.Handler.
func (*replay) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (*replay) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*replay) HandleConn(context.Context, stats.ConnStats) {}
