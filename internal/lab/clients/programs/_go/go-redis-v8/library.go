package main

import (
	"context"
	"errors"
	"fmt"
	"lab/protocol"

	"github.com/go-redis/redis/v8"
)

const modulePath = "github.com/go-redis/redis/v8"

type goRedis struct{ redis.UniversalClient }

func open(w *workload) (client, error) {
	switch w.Mode {
	case protocol.Cluster:
		return goRedis{openCluster(w)}, nil
	case protocol.Ring:
		return goRedis{openRing(w)}, nil
	}
	return goRedis{redis.NewClient(&redis.Options{
		Addr: w.Addresses[0], Password: w.Password, DB: w.DB, Dialer: w.dial, OnConnect: setName(w),
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: w.Retries,
	})}, nil
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

func (l goRedis) worker() caller { return l }

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
