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
		MaxConnLifetime: w.ConnLifetime,
		Dial:            func() (redis.Conn, error) { return redis.Dial("tcp", w.Addresses[0], options...) },
	}
	if w.TestOnBorrow {
		p.TestOnBorrow = func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		}
	}
	return redigo{p, w}, nil
}

func (l redigo) worker() caller {
	if l.w.OwnConnections {
		return &ownConn{of: l.Pool}
	}
	return l
}

// ownConn is a worker with a connection of its own, which it takes from the pool once, and again after an error.
type ownConn struct {
	of   *redis.Pool
	conn redis.Conn
}

func (c *ownConn) call(args []any) (string, error) {
	if c.conn == nil {
		c.conn = c.of.Get()
	}
	reply, err := c.conn.Do(args[0].(string), args[1:]...) // never empty
	if err != nil {
		c.closeOwn()
	}
	s, _ := reply.([]byte)
	return string(s), err
}

// closeOwn returns the connection.
func (c *ownConn) closeOwn() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

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
