package main

import (
	"context"
	"fmt"
	"lab/protocol"
	"net"

	"github.com/go-redis/redis"
)

const modulePath = "github.com/go-redis/redis"

type goRedis struct{ redisClient }

// redisClient is a client for one server, for a cluster or for a ring. The library's UniversalClient has no Do.
type redisClient interface {
	Do(args ...any) *redis.Cmd
	PoolStats() *redis.PoolStats
	Close() error
}

func open(w *workload) (client, error) {
	switch w.Mode {
	case protocol.Cluster:
		return goRedis{openCluster(w)}, nil
	case protocol.Ring:
		return goRedis{openRing(w)}, nil
	}
	return goRedis{redis.NewClient(&redis.Options{
		Addr: w.Addresses[0], Password: w.Password, DB: w.DB, OnConnect: setName(w),
		Dialer:   func() (net.Conn, error) { return w.dial(context.Background(), "tcp", w.Addresses[0]) },
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		// the default is no retry, and -1 would make no attempt at all
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: max(w.Retries, 0),
	})}, nil
}

// openCluster counts the connections that succeeded, since this client takes no dialer.
func openCluster(w *workload) redisClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: w.Addresses, Password: w.Password, OnConnect: countAndName(w), RouteRandomly: w.ReadReplicas,
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRedirects: w.Retries,
	})
}

func openRing(w *workload) redisClient {
	shards := map[string]string{}
	for i, addr := range w.Addresses {
		shards[fmt.Sprint("shard", i)] = addr
	}
	return redis.NewRing(&redis.RingOptions{
		Addrs: shards, Password: w.Password, DB: w.DB, OnConnect: countAndName(w),
		PoolSize: w.PoolSize, MinIdleConns: w.MinIdle, IdleTimeout: w.IdleLimit, PoolTimeout: w.PoolTimeout,
		// the default is no retry, and -1 would make no attempt at all
		DialTimeout: w.DialTimeout, ReadTimeout: w.ReadTimeout, MaxRetries: max(w.Retries, 0),
	})
}

// setName returns nil if there is no name. With a name each connection costs one more round trip.
func setName(w *workload) func(*redis.Conn) error {
	if w.Name == "" {
		return nil
	}
	return func(c *redis.Conn) error { return c.ClientSetName(w.Name).Err() }
}

func countAndName(w *workload) func(*redis.Conn) error {
	name := setName(w)
	return func(c *redis.Conn) error {
		w.dials.Add(1)
		if name == nil {
			return nil
		}
		return name(c)
	}
}

func (l goRedis) worker() caller { return l }

func (l goRedis) call(args []any) (string, error) {
	reply, err := l.Do(args...).Result()
	if err == redis.Nil {
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
