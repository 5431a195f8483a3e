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

// handTimeout bounds a round trip of a hand.
const handTimeout = 10 * time.Second

// Hand is a connection that prepares the data of a load and clears them away. Unlike a session it may write. It is a
// workload.Node, for one goroutine.
type Hand struct {
	conn   *target.Conn
	reader *resp.Reader
	addr   string
	out    []byte
}

// OpenHand connects and logs in. Errors are those of session.Open.
func OpenHand(ctx context.Context, t target.Target) (*Hand, error) {
	s, _, err := session.Open(ctx, t, "slowpath-bench")
	if err != nil {
		return nil, err
	}
	conn := s.Detach()
	return &Hand{conn: conn, reader: resp.NewReader(conn, resp.Limits{}), addr: t.Addr()}, nil
}

// Close closes the connection.
func (h *Hand) Close() error { return h.conn.Close() }

// Pipeline implements workload.Node.
func (h *Hand) Pipeline(ctx context.Context, commands [][]string) ([]resp.Value, error) {
	h.out = h.out[:0]
	for _, args := range commands {
		h.out = resp.AppendCommand(h.out, args...)
	}
	return h.exchange(ctx, h.out, len(commands))
}

// exchange writes encoded requests and reads their replies.
func (h *Hand) exchange(ctx context.Context, requests []byte, replies int) ([]resp.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.conn.SetDeadline(time.Now().Add(handTimeout)); err != nil {
		return nil, fmt.Errorf("%s: %w", h.addr, err)
	}
	// The bytes of a pipeline are fewer than what the sockets hold, so that the server can answer before it has read
	// all.
	if _, err := h.conn.Write(requests); err != nil {
		return nil, fmt.Errorf("%s: %w", h.addr, err)
	}
	values := make([]resp.Value, 0, replies)
	for len(values) < replies {
		v, err := h.reader.Read()
		if err != nil {
			return values, fmt.Errorf("%s: %w", h.addr, err)
		}
		if v.Kind != resp.Push {
			values = append(values, v)
		}
	}
	return values, nil
}

// do is one command whose error reply is an error.
func (h *Hand) do(ctx context.Context, args ...string) (resp.Value, error) {
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
