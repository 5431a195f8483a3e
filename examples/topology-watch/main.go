// A client of go-redis v9 that never polls the map of its cluster: it reads the map once, and then subscribes to the
// channels __cluster__:moved and __cluster__:failover, on which `slowpath topology watch CLUSTER --publish` publishes
// changes.
//
//	go run . 127.0.0.1:7001
//
// It sets keys in all slots of the cluster, and prints each second the number of calls, of redirected calls, of map
// reads from a server, and of changes received by message. (On loopback go-redis names nodes ":PORT" if the map does
// not come from a server; this makes no difference.)
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: topology-watch HOST:PORT, of any node of a cluster")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, seed string) error {
	m := newSlotMap(seed)
	if err := m.read(ctx); err != nil {
		return fmt.Errorf("reading the map of %s: %w", seed, err)
	}
	var redirects atomic.Int64
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:        []string{seed},
		ClusterSlots: m.slots, // instead of CLUSTER SLOTS, which the client would send periodically
		NewClient: func(o *redis.Options) *redis.Client {
			c := redis.NewClient(o)
			c.AddHook(redirectCounter{&redirects})
			return c
		},
	})
	defer client.Close()
	go m.follow(ctx, client)

	var calls, failed int64
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
			fmt.Printf("%d calls, %d failed, %d redirected; map read %d times, %d changes by message\n",
				calls, failed, redirects.Load(), m.reads.Load(), m.changes.Load())
		default:
		}
		key := "example:" + strconv.Itoa(i%10_000)
		if err := client.Set(ctx, key, i, time.Minute).Err(); err != nil && ctx.Err() == nil {
			failed++
		}
		calls++
		time.Sleep(time.Millisecond)
	}
}

// redirectCounter counts the MOVED replies to the client.
type redirectCounter struct{ count *atomic.Int64 }

func (r redirectCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r redirectCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		var e redis.Error
		if errors.As(err, &e) && strings.HasPrefix(e.Error(), "MOVED ") {
			r.count.Add(1)
		}
		return err
	}
}

func (r redirectCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
