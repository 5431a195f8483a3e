// The leaderboard of a game (docs/apps.md) over redigo: players score, and look at the best and at their rank.
package main

import (
	"lab/meter"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

const players = 10_000

func main() {
	pool := &redis.Pool{
		MaxIdle: 8, MaxActive: 16, Wait: true, IdleTimeout: 4 * time.Minute,
		Dial: func() (redis.Conn, error) { return redis.DialURL(os.Getenv("REDIS_URL")) },
	}
	run(untilTerminated(), 8, func(m *meter.Meter) {
		player := "player" + strconv.Itoa(rand.IntN(players))
		if rand.IntN(3) == 0 {
			_ = m.Measure("score", func() error { return score(pool, player) }) // counted
		} else {
			_ = m.Measure("page", func() error { return page(pool, player) }) // counted
		}
	})
}

func score(pool *redis.Pool, player string) error {
	c := pool.Get()
	defer c.Close()
	_, err := c.Do("ZINCRBY", "scores", rand.IntN(100), player)
	return err
}

func page(pool *redis.Pool, player string) error {
	c := pool.Get()
	defer c.Close()
	for _, command := range [][]any{
		{"ZREVRANGE", "scores", 0, 9, "WITHSCORES"}, {"ZREVRANK", "scores", player}, {"ZCARD", "scores"},
	} {
		if err := c.Send(command[0].(string), command[1:]...); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for range 3 {
		if _, err := c.Receive(); err != nil {
			return err
		}
	}
	return nil
}
