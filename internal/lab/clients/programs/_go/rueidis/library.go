package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"lab/protocol"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

const modulePath = "github.com/redis/rueidis"

// multiplexed is rueidis without the client-side cache, which the calls do not use.
type multiplexed struct{ rueidis.Client }

func open(w *workload) (client, error) {
	if w.Mode == protocol.Ring {
		return nil, fmt.Errorf("mode %s: %w", w.Mode, errUnsupported)
	}
	o := rueidis.ClientOption{
		InitAddress: w.Addresses, ForceSingleClient: w.Mode != protocol.Cluster,
		Password: w.Password, ClientName: w.Name, SelectDB: w.DB, ConnWriteTimeout: w.ReadTimeout, DisableCache: true,
		DisableRetry:          w.Retries < 0,
		DisableAutoPipelining: w.PoolSize > 0, // then each call takes a connection of the pool
		BlockingPoolSize:      w.PoolSize, BlockingPoolMinSize: w.MinIdle, BlockingPoolCleanup: w.IdleLimit,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return w.dial(ctx, "tcp", addr)
		},
	}
	o.ClusterOption.ShardsRefreshInterval = w.TopologyRefresh
	if w.ReadReplicas {
		o.SendToReplicas = func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, err) // this library connects at once
	}
	return multiplexed{c}, nil
}

func (l multiplexed) worker() caller { return l }

func (l multiplexed) call(args []any) (string, error) {
	text := make([]string, len(args))
	for i, a := range args {
		text[i] = a.(string) // of Options.Commands
	}
	// the helper asks all nodes of a cluster at once, each for its keys
	if strings.EqualFold(text[0], "MGET") {
		_, err := rueidis.MGet(l.Client, context.Background(), text[1:])
		return "", err
	}
	c := l.B().Arbitrary(text[0])
	if len(text) > 1 {
		c = c.Keys(text[1]).Args(text[2:]...)
	}
	cmd := rueidis.Completed{}
	switch strings.ToUpper(text[0]) { // as the typed builder marks them
	case "GET":
		cmd = c.ReadOnly() // may be retried, and sent to replicas
	case "BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		cmd = c.Blocking() // uses connections of a separate pool
	default:
		cmd = c.Build()
	}
	reply, err := l.Do(context.Background(), cmd).ToAny()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	s, _ := reply.(string)
	return s, err
}

// pool returns nothing: the library keeps a fixed number of connections and does not say how many.
func (l multiplexed) pool() (p protocol.Pool) {
	l.Close()
	return p
}
