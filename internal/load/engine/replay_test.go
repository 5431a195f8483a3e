package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/load/workload"
)

// logged is the text of a log: each client appends its numbers to a list of its own, one after the other, apart in
// time.
func logged(requests, clients int, apart time.Duration) string {
	var b strings.Builder
	for i := range requests {
		at := time.Duration(i) * apart
		fmt.Fprintf(&b, "%d.%06d [0 10.0.0.1:%d] \"RPUSH\" \"list:%d\" \"%d\"\n", 1_700_000_000+at/time.Second,
			at%time.Second/time.Microsecond, i%clients, i%clients, i)
	}
	return b.String()
}

func replayOf(t *testing.T, log string, o workload.ReplayOptions) *workload.Replay {
	t.Helper()
	r, err := workload.ReadMonitor(strings.NewReader(log), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayContradictions(t *testing.T) {
	log := replayOf(t, logged(1, 1, 0), workload.ReplayOptions{})
	for name, change := range map[string]func(*Options){
		"workload": func(o *Options) { o.Workload = simple(t, "get", 3) },
		"schedule": func(o *Options) { o.Schedule = []Stretch{{}} },
		"per call": func(o *Options) { o.PerCall = true }, "pool": func(o *Options) { o.Pool, o.Workers = 1, 1 },
		"batch":  func(o *Options) { o.Batch = true },
		"verify": func(o *Options) { o.Verify = true }, "speed": func(o *Options) { o.ReplaySpeed = -1 },
		"cold": func(o *Options) { o.ColdStart = true },
	} {
		o := Options{Replay: log, Connections: 1}
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		change(&o)
		if err := o.Check(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
