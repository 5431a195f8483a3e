// An API (docs/apps.md) that limits the requests of each user with redis_rate, over go-redis.
package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

func main() {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	must(err)
	client := redis.NewClient(o)
	limiter := redis_rate.NewLimiter(client)
	serve(untilTerminated(), func(w http.ResponseWriter, r *http.Request) {
		user := "user" + strconv.Itoa(rand.IntN(500))
		allowed, err := limiter.Allow(r.Context(), user, redis_rate.PerSecond(1000))
		if err == nil && allowed.Allowed == 0 {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		var answer string
		if err == nil {
			answer, err = client.Get(r.Context(), "answer:"+user).Result()
		}
		if errors.Is(err, redis.Nil) {
			answer = strings.Repeat("row ", 100)
			err = client.Set(r.Context(), "answer:"+user, answer, 30*time.Second).Err()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(answer)) // the visitor may be gone
	})
}
