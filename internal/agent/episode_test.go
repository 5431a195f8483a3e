package agent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"slowpath/internal/live"
)

// fakeKeeper takes down what episodes decide.
type fakeKeeper struct {
	now   int64
	begun []int64
	said  []string
	cause string
	// judged are called after the step.
	judged []func()
	fail   error
	late   int64 // seconds from when on judgements are done; 0: at once
}

func (k *fakeKeeper) begin(f Firing, start int64) (string, error) {
	if k.fail != nil {
		return "", k.fail
	}
	k.begun = append(k.begun, k.now)
	k.note("begin %s since %d", f.Kind, start-testTime)
	return fmt.Sprint(len(k.begun)), nil
}

func (k *fakeKeeper) judge(id string, from, to, end int64, final bool, judged func(string)) {
	k.note("judge %s %d to %d, end %d, final %v", id, from-testTime, to-testTime, end-testTime, final)
	k.judged = append(k.judged, func() { judged(k.cause) })
}

func (k *fakeKeeper) extend(id string, end, slow, failed int64) {
	k.note("extend %s to %d: %d slow, %d failed", id, end-testTime, slow, failed)
}

func (k *fakeKeeper) note(format string, args ...any) {
	k.said = append(k.said, fmt.Sprintf("%d: ", k.now-testTime)+fmt.Sprintf(format, args...))
}

// story plays seconds of calls, slow ones where slow says so.
func story(e *episodes, k *fakeKeeper, from, to int64, slow func(int64) bool) {
	for at := from; at < to; at++ {
		s := second(testTime+at, live.Users, 100, 0, 0)
		if slow(at) {
			s = second(testTime+at, live.Users, 100, 50, 20*time.Millisecond)
		}
		k.now = testTime + at + 1
		e.take([]live.Second{s})
		e.step(k.now)
		if k.now < testTime+k.late {
			continue
		}
		for _, done := range k.judged {
			done()
		}
		k.judged = nil
	}
}

func testEpisodes() (*episodes, *fakeKeeper) {
	k := &fakeKeeper{}
	s := Settings{
		Before: DefaultBefore, After: DefaultAfter, Longest: DefaultLongest, CoolDown: DefaultCoolDown,
		Off: map[Kind]bool{},
	}
	return &episodes{keep: k, triggers: testTriggers(), limits: s}, k
}

func check(t *testing.T, k *fakeKeeper, want ...string) {
	t.Helper()
	if fmt.Sprint(k.said) != fmt.Sprint(want) {
		t.Errorf("got\n%q\nwant\n%q", k.said, want)
	}
}

// TestShortIncident: a first verdict soon after the trigger, and the last one when it is calm.
func TestShortIncident(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 200, func(at int64) bool { return at >= 100 && at < 104 })
	check(t, k,
		"101: begin slow since 100",
		"101: extend 1 to 101: 50 slow, 0 failed",
		"104: judge 1 40 to 104, end 104, final false",
		"116: extend 1 to 108: 200 slow, 0 failed",
		"116: judge 1 40 to 116, end 108, final true")
}

// TestLongIncident: the recording is bounded, what follows is part of the incident, and after a while another begins.
func TestLongIncident(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 3*3600, func(at int64) bool { return at >= 100 })
	if len(k.begun) < 5 || len(k.begun) > 12 {
		t.Errorf("%d incidents in three hours of the same: %v", len(k.begun), k.begun)
	}
	for i, at := range k.begun[1:] {
		if apart := at - k.begun[i]; apart < seconds(DefaultLongest) || apart > mostRenewal {
			t.Errorf("incidents are %d s apart", apart)
		}
	}
}

// TestLateVerdicts: where nothing can be judged for a time, as the CPUs are busy, the same makes no further incident.
func TestLateVerdicts(t *testing.T) {
	e, k := testEpisodes()
	k.late = 2000
	story(e, k, 0, 2600, func(at int64) bool { return at >= 100 })
	if len(k.begun) < 2 || k.begun[1]-testTime < k.late {
		t.Errorf("incidents begin at %v, %d", k.begun, testTime)
	}
}

// TestNoStorm: what comes and goes each half minute for five minutes is two incidents, with a recording each.
func TestNoStorm(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 500, func(at int64) bool { return at >= 100 && at < 400 && at%30 < 3 })
	if len(k.begun) != 2 {
		t.Errorf("%d incidents: %q", len(k.begun), k.said)
	}
	story(e, k, 500, 700, func(at int64) bool { return at >= 600 && at < 605 })
	if len(k.begun) != 3 {
		t.Errorf("%d incidents, want another one after the cool-down", len(k.begun))
	}
}

// TestEachMinute: what comes back all day, always for the same cause, makes some incidents and not hundreds.
func TestEachMinute(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	story(e, k, 0, 24*3600, func(at int64) bool { return at%90 < 2 })
	if len(k.begun) < 20 || len(k.begun) > 40 {
		t.Errorf("%d incidents", len(k.begun))
	}
}

// TestAnotherNode: what begins at another node soon after an incident is another one.
func TestAnotherNode(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 130, func(at int64) bool { return at >= 100 && at < 104 })
	for at := int64(130); at < 135; at++ {
		s := second(testTime+at, live.Users, 100, 50, 20*time.Millisecond)
		s.Node = "10.0.0.9:6379"
		k.now = testTime + at + 1
		e.take([]live.Second{s})
		e.step(k.now)
	}
	if len(k.begun) != 2 {
		t.Errorf("%d incidents: %q", len(k.begun), k.said)
	}
}

// TestAsked: somebody asks; while an incident is watched, it is that one.
func TestAsked(t *testing.T) {
	e, k := testEpisodes()
	if _, err := e.ask("POST"); !errors.Is(err, ErrNotYet) {
		t.Errorf("before anything was watched: %v", err)
	}
	quick := func(int64) bool { return false }
	story(e, k, 0, 10, quick)
	first, err := e.ask("POST")
	again, againErr := e.ask("SIGUSR1")
	if err != nil || againErr != nil || first != again {
		t.Errorf("%q and %q, %v, %v", first, again, err, againErr)
	}
	story(e, k, 10, 60, quick)
	next, err := e.ask("POST")
	if err != nil || next == first {
		t.Errorf("after its end: %q, %v", next, err)
	}
}

// TestNoRoomForAnIncident: an incident that cannot be kept is tried again, and nothing else ends.
func TestNoRoomForAnIncident(t *testing.T) {
	e, k := testEpisodes()
	k.fail = errors.New("no space left on device")
	slow := func(int64) bool { return true }
	story(e, k, 0, 10, slow)
	if e.busy() || len(k.begun) > 0 {
		t.Error("it began all the same")
	}
	if _, err := e.ask("POST"); !errors.Is(err, k.fail) {
		t.Errorf("asked for: %v", err)
	}
	k.fail = nil
	story(e, k, 10, 12, slow)
	if len(k.begun) != 1 {
		t.Errorf("%d incidents when there is room again", len(k.begun))
	}
}

// TestClockJumps: whatever the clock does, at most one incident is watched, and it ends.
func TestClockJumps(t *testing.T) {
	for _, jump := range []int64{-100000, -5, 5, 100000} {
		e, k := testEpisodes()
		slow := func(at int64) bool { return at >= 100 && at < 105 || at >= 100+jump && at < 105+jump }
		story(e, k, 0, 103, slow)
		story(e, k, 103+jump, 103+jump+600, slow)
		if e.busy() {
			t.Errorf("jump by %d s: the incident never ends: %q", jump, k.said)
		}
	}
}

// TestStop: the agent stops while an incident is watched.
func TestStop(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 102, func(at int64) bool { return at >= 100 })
	e.stop()
	e.stop()
	if got := k.said[len(k.said)-1]; got != "102: judge 1 40 to 102, end 102, final true" {
		t.Errorf("got %q", got)
	}
}
