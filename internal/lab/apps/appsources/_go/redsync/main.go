// A booking service (docs/apps.md): a lock of redsync keeps each seat from being sold twice.
package main

import (
	"context"
	"lab/meter"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const seats = 200

func main() {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	must(err)
	client := redis.NewClient(o)
	locks := redsync.New(goredis.NewPool(client))
	run(untilTerminated(), 6, func(m *meter.Meter) {
		_ = m.Measure("booking", func() error { // counted
			return book(context.Background(), client, locks, "seat"+strconv.Itoa(rand.IntN(seats)))
		})
	})
}

func book(ctx context.Context, client *redis.Client, locks *redsync.Redsync, seat string) (err error) {
	lock := locks.NewMutex("lock:"+seat, redsync.WithExpiry(10*time.Second))
	if err := lock.LockContext(ctx); err != nil {
		return err
	}
	defer func() {
		if _, unlockErr := lock.UnlockContext(ctx); err == nil {
			err = unlockErr
		}
	}()
	if err := client.HIncrBy(ctx, "sold", seat, 1).Err(); err != nil {
		return err
	}
	return client.LPush(ctx, "log:"+seat, time.Now().Unix()).Err()
}
