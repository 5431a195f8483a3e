package codis

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

var (
	// ErrNotProxy says that what answers is no stand-in for Codis.
	ErrNotProxy = errors.New("it is no proxy of lab up --proxy codis")
	// ErrRequest says that the proxy refuses a request that makes no sense.
	ErrRequest = errors.New("the proxy refuses it")
)

// Owner says where the keys of a range of slots are.
type Owner struct {
	Slots  Range
	Server string // HOST:PORT
	From   string // keys are migrated from there; empty: all are at Server
}

// Owners asks the proxy at HOST:PORT where slots are. The error is ErrNotProxy if it does not know.
func Owners(ctx context.Context, addr string) ([]Owner, error) {
	v, err := ask(ctx, addr, "SLOTSOWNERS")
	if err != nil {
		return nil, err
	}
	var out []Owner
	for _, row := range v.Elems {
		if len(row.Elems) != 4 {
			return nil, fmt.Errorf("%s: %w", addr, ErrNotProxy)
		}
		e := row.Elems
		out = append(out, Owner{Range{int(e[0].Int), int(e[1].Int)}, e[2].Text(), e[3].Text()})
	}
	return out, nil
}

// Migrate has the proxy move slots to one of its servers, and waits until they are there. It returns the number of keys
// that calls had not moved before. The error is ErrRequest if the proxy does not have the server.
func Migrate(ctx context.Context, addr string, slots Range, to string) (keys int64, err error) {
	v, err := ask(ctx, addr, "SLOTSMIGRATE", slots.String(), to)
	return v.Int, err
}

func ask(ctx context.Context, addr string, args ...string) (resp.Value, error) {
	t, err := target.Parse(addr)
	if err != nil {
		return resp.Value{}, err
	}
	conn, _, err := target.Dial(ctx, t)
	if err != nil {
		return resp.Value{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var v resp.Value
	if _, err = conn.Write(resp.AppendCommand(nil, args...)); err == nil {
		v, err = resp.NewReader(conn, resp.DefaultLimits).Read()
	}
	if err == nil {
		err = v.Err()
	}
	switch refused, is := bytes.CutPrefix(v.Str, []byte(refusal)); {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case err == nil:
		return v, nil
	case v.Kind.IsError() && is:
		return v, fmt.Errorf("%w: %s", ErrRequest, refused)
	case errors.Is(err, resp.ErrNotRedis), v.Kind.IsError() && args[0] == "SLOTSOWNERS":
		return v, fmt.Errorf("%s: %w", addr, ErrNotProxy)
	}
	return v, fmt.Errorf("%s of %s: %w", args[0], addr, err)
}
