package agent

import (
	"testing"
	"testing/synctest"
)

// TestOwnTime: an incident is judged by as much time as its trigger was, or by more, and by none after its recording.
func TestOwnTime(t *testing.T) {
	for _, c := range []struct {
		name             string
		w                window
		since            int64
		wantFrom, wantTo int64
	}{
		{"first verdict, three seconds after the trigger", window{40, 106, 104}, 100, 96, 106},
		{"a burst of two seconds", window{40, 118, 107}, 100, 100, 110},
		{"as long as its recording", window{40, 220, 220}, 100, 100, 220},
		{"calm in the end", window{40, 220, 150}, 100, 100, 150},
		{"asked for", window{40, 115, 101}, 100, 100, 110},
	} {
		if from, to := c.w.own(c.since); from != c.wantFrom || to != c.wantTo {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, from, to, c.wantFrom, c.wantTo)
		}
	}
}

// TestTooManyJobs: an agent whose queue is full goes on, and the incident counts as dealt with.
func TestTooManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &recorder{Agent: &Agent{log: NewLog(t.Output(), false)}, jobs: make(chan func())}
		e, c := &episodes{keep: full, triggers: testTriggers()}, &episode{id: "1"}
		e.current = c
		e.stop()
		synctest.Wait()
		if !c.judged {
			t.Error("it still waits for its verdict")
		}
	})
}
