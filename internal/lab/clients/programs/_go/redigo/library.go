package main

import (
	"context"
	"fmt"
	"lab/protocol"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
)

const modulePath = "github.com/gomodule/redigo"

// redigo is the pool of one server.
type redigo struct {
	*redis.Pool
	w *workload
}

func open(w *workload) (client, error) {
	if w.Mode != "" && w.Mode != protocol.Standalone {
		return nil, fmt.Errorf("mode %s: %w", w.Mode, errUnsupported)
	}
	options := []redis.DialOption{
		redis.DialPassword(w.Password), redis.DialClientName(w.Name),
		redis.DialDatabase(w.DB),
		redis.DialReadTimeout(w.ReadTimeout), redis.DialNetDial(func(network, addr string) (net.Conn, error) {
			return w.dial(context.Background(), network, addr)
		}),
	}
	p := &redis.Pool{
		MaxActive: w.PoolSize, MaxIdle: w.MaxIdle, IdleTimeout: w.IdleLimit, Wait: w.PoolSize > 0,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", w.Addresses[0], options...) },
	}
	if w.TestOnBorrow {
		p.TestOnBorrow = func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		}
	}
	return redigo{p, w}, nil
}

func (l redigo) worker() caller { return l }

// call borrows a connection and returns it, as the library's documentation says, unless the call is to leak it.
func (l redigo) call(args []any) (string, error) {
	c := l.Get()
	if !l.w.leaks() {
		defer c.Close()
	}
	reply, err := c.Do(args[0].(string), args[1:]...) // never empty
	s, _ := reply.([]byte)
	return string(s), err
}

func (l redigo) pool() protocol.Pool {
	s := l.Stats()
	_ = l.Close()
	return protocol.Pool{
		Connections: int64(s.ActiveCount), Idle: int64(s.IdleCount), Waits: s.WaitCount,
		Wait: s.WaitDuration,
	}
}
