package main

import (
	"context"
	"errors"
	"fmt"
	"lab/protocol"

	"github.com/go-redis/redis/v8"
)

const modulePath = "github.com/go-redis/redis/v8"

type goRedis struct {
	redis.UniversalClient
	own bool
}

func open(w *workload) (client, error) {
	switch w.Mode {
	case protocol.Cluster:
		return goRedis{openCluster(w), false}, nil
	case protocol.Ring:
		return goRedis{openRing(w), false}, nil
	}
	return goRedis{redis.NewClient(&redis.Options{
		Addr: w.Addresses[0], Password: w.Password, DB: w.DB, Dialer: w.dial, OnConnect: setName(w),
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: w.Retries,
	}), w.OwnConnections}, nil
}

func openCluster(w *workload) redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: w.Addresses, Password: w.Password, Dialer: w.dial, OnConnect: setName(w), RouteRandomly: w.ReadReplicas,
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRedirects: w.Retries,
	})
}

func openRing(w *workload) redis.UniversalClient {
	shards := map[string]string{}
	for i, addr := range w.Addresses {
		shards[fmt.Sprint("shard", i)] = addr
	}
	return redis.NewRing(&redis.RingOptions{
		Addrs: shards, Password: w.Password, DB: w.DB, Dialer: w.dial, OnConnect: setName(w),
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: w.Retries,
	})
}

// setName returns nil if there is no name. With a name each connection costs one more round trip.
func setName(w *workload) func(context.Context, *redis.Conn) error {
	if w.Name == "" {
		return nil
	}
	return func(ctx context.Context, c *redis.Conn) error { return c.ClientSetName(ctx, w.Name).Err() }
}

func (l goRedis) worker() caller {
	if one, ok := l.UniversalClient.(*redis.Client); ok && l.own {
		return &ownConn{of: one}
	}
	return l
}

// ownConn is a worker with a connection of its own, which it takes from the pool once, and again after an error.
type ownConn struct {
	of   *redis.Client
	conn *redis.Conn
}

func (c *ownConn) call(args []any) (string, error) {
	ctx := context.Background()
	if c.conn == nil {
		c.conn = c.of.Conn(ctx)
	}
	cmd := redis.NewCmd(ctx, args...) // this Conn has no Do
	err := c.conn.Process(ctx, cmd)
	switch {
	case errors.Is(err, redis.Nil):
		err = nil
	case err != nil:
		c.closeOwn()
	}
	s, _ := cmd.Val().(string)
	return s, err
}

// closeOwn returns the connection.
func (c *ownConn) closeOwn() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (l goRedis) call(args []any) (string, error) {
	reply, err := l.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	s, _ := reply.(string)
	return s, err
}

func (l goRedis) pool() protocol.Pool {
	s := l.PoolStats()
	_ = l.Close()
	return protocol.Pool{
		Connections: int64(s.TotalConns), Idle: int64(s.IdleConns), Hits: int64(s.Hits),
		Misses:   int64(s.Misses),
		Timeouts: int64(s.Timeouts), Stale: int64(s.StaleConns),
	}
}
