package agent

import (
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/house/await"
)

// TestOwnTime: an incident is judged by its own time, which is as long as that of a trigger at least, and by none after
// what was seen.
func TestOwnTime(t *testing.T) {
	for _, c := range []struct {
		name             string
		of               span
		end              int64
		wantFrom, wantTo int64
	}{
		{"first verdict, three seconds after the trigger", span{100, 104}, 104, 100, 104},
		{"asked for just now", span{100, 101}, 101, 98, 101},
		{"a burst of two seconds", span{100, 118}, 102, 100, 110},
		{"as long as its recording", span{100, 220}, 220, 100, 220},
		{"calm in the end", span{100, 220}, 150, 100, 151},
	} {
		if from, to := ownTime(c.of, c.end); from != c.wantFrom || to != c.wantTo {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, from, to, c.wantFrom, c.wantTo)
		}
	}
}

// TestTooManyJobs: an agent whose queue is full goes on, and the incident counts as dealt with: it has failed, and is
// not watched for ever.
func TestTooManyJobs(t *testing.T) {
	a := openTestAgent(t, filepath.Join(t.TempDir(), "data"), func(judge.Options) {})
	begun, err := a.store.Begin("slow calls", "127.0.0.1:6379", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	full := &recorder{Agent: a, jobs: make(chan func())}
	e, c := &episodes{keep: full, triggers: testTriggers()}, &episode{id: begun.ID}
	e.current = []*episode{c}
	e.stop()
	await.Until(t, "it is dealt with", func() bool {
		in, _ := a.store.Get(begun.ID)
		e.mu.Lock()
		defer e.mu.Unlock()
		return c.judged && in.State == incidents.StateFailed
	})
}
