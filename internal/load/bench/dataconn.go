package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Bounds of a round trip.
const (
	dataTimeout     = 10 * time.Second
	maxRepliesBytes = 32 << 20 // SCAN gives the names of keys by the hundred
)

// DataConn is a connection that writes the keys of a load before it, and removes them after it. Unlike a session it may
// write. It is a workload.Node, for one goroutine.
type DataConn struct {
	conn   *target.Conn
	reader *resp.Reader
	addr   string
	out    []byte
}

// OpenDataConn connects and logs in. Errors are those of session.Open.
func OpenDataConn(ctx context.Context, t target.Target) (*DataConn, error) {
	s, _, err := session.Open(ctx, t, "slowpath-bench")
	if err != nil {
		return nil, err
	}
	conn := s.Detach()
	return &DataConn{conn: conn, reader: resp.NewReader(conn, resp.Limits{}), addr: t.Addr()}, nil
}

// Close closes the connection.
func (h *DataConn) Close() error { return h.conn.Close() }

// Pipeline implements workload.Node.
func (h *DataConn) Pipeline(ctx context.Context, commands [][]string) ([]resp.Value, error) {
	h.out = h.out[:0]
	for _, args := range commands {
		h.out = resp.AppendCommand(h.out, args...)
	}
	return h.exchange(ctx, h.out, len(commands))
}

// exchange writes encoded requests and reads their replies.
func (h *DataConn) exchange(ctx context.Context, requests []byte, replies int) ([]resp.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.conn.SetDeadline(time.Now().Add(dataTimeout)); err != nil {
		return nil, fmt.Errorf("%s: %w", h.addr, err)
	}
	// The bytes of a pipeline fit into the buffers of the sockets, so that the server can answer before it has read all
	// of them.
	if _, err := h.conn.Write(requests); err != nil {
		return nil, fmt.Errorf("%s: %w", h.addr, err)
	}
	values, err := h.reader.Replies(replies, maxRepliesBytes)
	if err != nil {
		return values, fmt.Errorf("%s: %w", h.addr, err)
	}
	return values, nil
}

// do sends one command; an error reply is an error.
func (h *DataConn) do(ctx context.Context, args ...string) (resp.Value, error) {
	vs, err := h.Pipeline(ctx, [][]string{args})
	if err != nil {
		return resp.Value{}, err
	}
	var reply *resp.ServerError
	if errors.As(vs[0].Err(), &reply) {
		return vs[0], fmt.Errorf("%s: %s: %w", h.addr, args[0], reply)
	}
	return vs[0], nil
}
