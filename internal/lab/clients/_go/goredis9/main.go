package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"lab/clients"
)

// library is go-redis v9.
type library struct {
	w      *workload
	client *redis.Client // shared by the workers; nil where each makes its own
}

func open(w *workload) *library {
	l := &library{w: w}
	if w.CallsPerClient == 0 {
		l.client = l.newClient()
	}
	return l
}

func (l *library) newClient() *redis.Client {
	w := l.w
	dialer := net.Dialer{Timeout: 5 * time.Second} // the library's own default
	return redis.NewClient(&redis.Options{
		Addr: w.Address, Password: w.Password, DB: w.DB, ClientName: w.Name,
		PoolSize: w.PoolSize, ConnMaxIdleTime: w.IdleLimit, ReadTimeout: w.ReadTimeout,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			w.dials.Add(1)
			return dialer.DialContext(ctx, network, addr)
		},
	})
}

func (l *library) worker() caller { return &worker{library: l} }

func (l *library) stats(s *clients.Summary) {
	if l.client == nil {
		return
	}
	p := l.client.PoolStats()
	s.PoolWaits, s.PoolWait = int64(p.WaitCount), time.Duration(p.WaitDurationNs)
	_ = l.client.Close()
}

type worker struct {
	*library
	own   *redis.Client
	calls int
}

func (c *worker) call(args []any) (string, error) {
	client := c.client
	if client == nil {
		if c.own == nil || c.calls%c.w.CallsPerClient == 0 {
			if c.own != nil {
				_ = c.own.Close()
			}
			c.own = c.newClient()
		}
		client = c.own
		c.calls++
	}
	reply, err := client.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	s, _ := reply.(string)
	return s, err
}
