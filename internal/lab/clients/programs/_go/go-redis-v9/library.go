package main

import (
	"context"
	"errors"
	"fmt"
	"lab/protocol"
	"time"

	"github.com/redis/go-redis/v9"
)

const modulePath = "github.com/redis/go-redis/v9"

type goRedis struct {
	w      *workload
	client redis.UniversalClient // shared by the workers; nil if each makes its own
}

func open(w *workload) (client, error) {
	l := &goRedis{w: w}
	switch {
	case w.CallsPerClient > 0 && w.Mode != "" && w.Mode != protocol.Standalone:
		return nil, fmt.Errorf("calls_per_client in mode %s: %w", w.Mode, errUnsupported)
	case w.CallsPerClient == 0:
		l.client = l.newClient()
	}
	return l, nil
}

func (l *goRedis) newClient() redis.UniversalClient {
	switch l.w.Mode {
	case protocol.Cluster:
		return l.newCluster()
	case protocol.Ring:
		return l.newRing()
	}
	w := l.w
	return redis.NewClient(&redis.Options{
		Addr: w.Addresses[0], Password: w.Password, DB: w.DB, ClientName: w.Name, Dialer: w.dial,
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, MaxIdleConns: w.MaxIdle, ConnMaxIdleTime: w.IdleLimit,
		PoolTimeout: w.PoolTimeout, ConnMaxLifetime: w.ConnLifetime,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: w.Retries,
	})
}

func (l *goRedis) newCluster() redis.UniversalClient {
	w := l.w
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: w.Addresses, Password: w.Password, ClientName: w.Name, Dialer: w.dial, RouteRandomly: w.ReadReplicas,
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, MaxIdleConns: w.MaxIdle, ConnMaxIdleTime: w.IdleLimit,
		PoolTimeout: w.PoolTimeout, ConnMaxLifetime: w.ConnLifetime,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRedirects: w.Retries,
		ClusterStateReloadInterval: w.TopologyRefresh,
	})
}

func (l *goRedis) newRing() redis.UniversalClient {
	w := l.w
	shards := map[string]string{}
	for i, addr := range w.Addresses {
		shards[fmt.Sprint("shard", i)] = addr
	}
	return redis.NewRing(&redis.RingOptions{
		Addrs: shards, Password: w.Password, DB: w.DB, ClientName: w.Name, Dialer: w.dial,
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, MaxIdleConns: w.MaxIdle, ConnMaxIdleTime: w.IdleLimit,
		PoolTimeout: w.PoolTimeout, ConnMaxLifetime: w.ConnLifetime,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: w.Retries,
	})
}

func (l *goRedis) worker() caller {
	if one, ok := l.client.(*redis.Client); ok && l.w.OwnConnections {
		return &ownConn{of: one}
	}
	return &worker{goRedis: l}
}

// ownConn is a worker with a connection of its own, which it takes from the pool once, and again after an error.
type ownConn struct {
	of   *redis.Client
	conn *redis.Conn
}

func (c *ownConn) call(args []any) (string, error) {
	if c.conn == nil {
		c.conn = c.of.Conn()
	}
	reply, err := c.conn.Do(context.Background(), args...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		err = nil
	case err != nil:
		c.closeOwn()
	}
	s, _ := reply.(string)
	return s, err
}

// closeOwn returns the connection.
func (c *ownConn) closeOwn() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (l *goRedis) pool() (p protocol.Pool) {
	if l.client == nil {
		return p
	}
	s := l.client.PoolStats()
	_ = l.client.Close()
	return protocol.Pool{
		Connections: int64(s.TotalConns), Idle: int64(s.IdleConns), Hits: int64(s.Hits),
		Misses:   int64(s.Misses),
		Timeouts: int64(s.Timeouts), Stale: int64(s.StaleConns), Waits: int64(s.WaitCount),
		Wait: time.Duration(s.WaitDurationNs),
	}
}

type worker struct {
	*goRedis
	own   redis.UniversalClient
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
	if c.w.Pipeline > 1 {
		return "", c.pipeline(client, args)
	}
	do := client.Do
	if one, ok := client.(*redis.Client); ok && c.w.leaks() {
		do = one.Conn().Do // a connection of the pool, which only its Close would return
	}
	reply, err := do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	s, _ := reply.(string)
	return s, err
}

// closeOwn closes the worker's own client.
func (c *worker) closeOwn() {
	if c.own != nil {
		_ = c.own.Close()
	}
}

// pipeline sends commands of the mix at once. In a cluster the library sends each to the node of its key, and waits for
// all.
func (c *worker) pipeline(client redis.UniversalClient, first []any) error {
	pipe := client.Pipeline()
	pipe.Do(context.Background(), first...)
	for range c.w.Pipeline - 1 {
		pipe.Do(context.Background(), c.w.command()...)
	}
	_, err := pipe.Exec(context.Background())
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return err
}
