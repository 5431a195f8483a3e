package agent

import (
	"testing"
	"testing/synctest"
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

// TestTooManyJobs: an agent whose queue is full goes on, and the incident counts as dealt with.
func TestTooManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &recorder{Agent: &Agent{log: NewLog(t.Output(), false)}, jobs: make(chan func())}
		e, c := &episodes{keep: full, triggers: testTriggers()}, &episode{id: "1"}
		e.current = []*episode{c}
		e.stop()
		synctest.Wait()
		if !c.judged {
			t.Error("it still waits for its verdict")
		}
	})
}
