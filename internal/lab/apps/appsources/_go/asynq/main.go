// An application on asynq (docs/apps.md): a worker, and a web side that enqueues tasks. The time of a job is from when
// it was enqueued to when it is done.
package main

import (
	"context"
	"encoding/json"
	"io"
	"lab/meter"
	"log"
	"os"
	"time"

	"github.com/hibiken/asynq"
)

type report struct {
	Name     string
	Enqueued int64 // Unix time in ns
}

func main() {
	log.SetOutput(io.Discard)
	server, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	must(err)
	ctx := untilTerminated()
	client := asynq.NewClient(server)
	defer client.Close()
	var m *meter.Meter // set before the first task exists
	worker := asynq.NewServer(server, asynq.Config{Concurrency: 5, LogLevel: asynq.ErrorLevel})
	must(worker.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var r report
		if err := json.Unmarshal(t.Payload(), &r); err != nil {
			return err
		}
		m.Add("job", time.Duration(time.Now().UnixNano()-r.Enqueued), nil)
		return nil
	})))
	defer worker.Shutdown()
	run(ctx, 4, func(meter *meter.Meter) {
		m = meter
		body, err := json.Marshal(report{"report", time.Now().UnixNano()})
		must(err)
		_ = meter.Measure("enqueue", func() error { // counted
			_, err := client.Enqueue(asynq.NewTask("report", body))
			return err
		})
	})
}
