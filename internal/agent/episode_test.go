package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/live"
)

// fakeKeeper takes down what episodes decide.
type fakeKeeper struct {
	now   int64
	begun []int64
	nodes []string // of those that began
	said  []string
	cause string
	looks int
	// judged are called after the step.
	judged []func()
	fail   error
	late   int64 // seconds from when on judgements are done; 0: at once
}

func (k *fakeKeeper) begin(f Firing, nodes []string, start int64) (string, error) {
	if k.fail != nil {
		return "", k.fail
	}
	k.begun = append(k.begun, k.now)
	k.nodes = append(k.nodes, strings.Join(nodes, " "))
	k.note("begin %s since %d", f.Kind, start-testTime)
	return fmt.Sprint(len(k.begun)), nil
}

func (k *fakeKeeper) judge(id string, _ []string, s span, end int64, final bool, judged func(found)) {
	k.note("judge %s %d to %d, end %d, final %v", id, s.from-testTime, s.to-testTime, end-testTime, final)
	k.judged = append(k.judged, func() { judged(k.found()) })
}

func (k *fakeKeeper) look(id string, _ []string, s span, seen func(found)) {
	k.looks++
	k.note("look %s %d to %d", id, s.from-testTime, s.to-testTime)
	k.judged = append(k.judged, func() { seen(k.found()) })
}

func (k *fakeKeeper) found() found {
	if k.cause == "" {
		return found{}
	}
	return found{causes: []string{k.cause}, sure: true}
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

// TestShortIncident: a first verdict soon after the trigger, and the last one when it is calm. Each is of the time in
// which calls were slow.
func TestShortIncident(t *testing.T) {
	e, k := testEpisodes()
	story(e, k, 0, 200, func(at int64) bool { return at >= 100 && at < 104 })
	check(t, k,
		"101: begin slow since 100",
		"101: extend 1 to 101: 50 slow, 0 failed",
		"104: judge 1 100 to 104, end 104, final false",
		"116: extend 1 to 104: 200 slow, 0 failed",
		"116: judge 1 100 to 116, end 104, final true")
}

// TestLongIncident: what goes on for hours for one cause is one incident, which is looked at less and less often.
func TestLongIncident(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	story(e, k, 0, 3*3600, func(at int64) bool { return at >= 100 })
	if len(k.begun) != 1 {
		t.Errorf("%d incidents in three hours of the same: %v", len(k.begun), k.begun)
	}
	if most := 3*3600/mostApart + 5; k.looks < 10 || k.looks > most {
		t.Errorf("it was looked at %d times, want 10 to %d", k.looks, most)
	}
	if last := k.said[len(k.said)-1]; !strings.Contains(last, "extend 1 to 10") {
		t.Errorf("its end is not known: %s", last)
	}
}

// TestAnotherCause: what goes on for another cause is another incident. Causes that take turns are two.
func TestAnotherCause(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	slow := func(at int64) bool { return at >= 100 }
	story(e, k, 0, 400, slow)
	for i := range int64(20) {
		k.cause = []string{"server-cfs-throttled", "slow-command"}[i%2]
		story(e, k, 400+i*700, 400+(i+1)*700, slow)
	}
	if len(k.begun) != 2 {
		t.Errorf("%d incidents: %v", len(k.begun), k.begun)
	}
}

// TestComesBackForAnotherCause: soon after an incident calls of its node are slow again. Whether that is the same fault
// is asked before it becomes another incident, which begins when these calls did.
func TestComesBackForAnotherCause(t *testing.T) {
	for cause, want := range map[string]int{"slow-command": 1, "process-frozen": 2, "": 1} {
		e, k := testEpisodes()
		k.cause = "slow-command"
		slow := func(at int64) bool { return at >= 100 && at < 104 || at >= 118 && at < 120 }
		story(e, k, 0, 118, slow)
		k.cause = cause
		story(e, k, 118, 300, slow)
		if len(k.begun) != want {
			t.Errorf("%q: %d incidents: %q", cause, len(k.begun), k.said)
		}
		if want == 2 && !strings.Contains(fmt.Sprint(k.said), "begin slow since 118") {
			t.Errorf("it does not begin when its calls do: %q", k.said)
		}
	}
}

// TestComesBackWeaker: another fault of the node, which a short window shows before a long one, begins when its own
// calls do, and the one before ended when its did.
func TestComesBackWeaker(t *testing.T) {
	e, k := testEpisodes()
	play := func(from, to int64, slow int64) {
		for at := from; at < to; at++ {
			k.now = testTime + at + 1
			e.take([]live.Second{second(testTime+at, live.Users, 300, slow, 20*time.Millisecond)})
			e.step(k.now)
			for _, done := range k.judged {
				done()
			}
			k.judged = nil
		}
	}
	k.cause = "process-frozen"
	play(0, 100, 0)
	play(100, 104, 100)
	play(104, 160, 0)
	k.cause = "slow-command"
	play(160, 168, 15)
	play(168, 200, 0)
	said := strings.Join(k.said, "\n")
	for _, want := range []string{"begin slow since 160", "extend 1 to 104: 400 slow"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if i := strings.LastIndex(said, "extend 1 to "); !strings.HasPrefix(said[i:], "extend 1 to 104:") {
		t.Errorf("its end changed:\n%s", said)
	}
}

// TestTooEarlyToTell: what comes back is looked at again, where nothing is found for sure at first.
func TestTooEarlyToTell(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "process-frozen"
	slow := func(at int64) bool { return at >= 100 && at < 104 || at >= 150 && at < 158 }
	story(e, k, 0, 150, slow)
	k.cause = ""
	story(e, k, 150, 160, slow)
	k.cause = "slow-command"
	story(e, k, 160, 300, slow)
	if len(k.begun) != 2 || !strings.Contains(fmt.Sprint(k.said), "begin slow since 150") {
		t.Errorf("%d incidents: %q", len(k.begun), k.said)
	}
}

// TestWorse: while calls are slow, one takes far longer than all before it. That is looked at soon, from when it began.
func TestWorse(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	slow := func(at int64) bool { return at >= 100 }
	story(e, k, 0, 1000, slow)
	looks := k.looks
	e.take([]live.Second{second(testTime+1000, live.Users, 100, 10, 4200*time.Millisecond)})
	e.step(testTime + 1001)
	k.cause = "process-frozen"
	story(e, k, 1001, 1010, slow)
	if k.looks != looks+1 || len(k.begun) != 2 || !strings.Contains(fmt.Sprint(k.said), "begin slow since 996") {
		t.Errorf("%d looks, %d incidents: %q", k.looks-looks, len(k.begun), k.said[len(k.said)-6:])
	}
}

// TestLateVerdicts: where nothing can be judged for a time, as the CPUs are busy, the same makes no further incident.
func TestLateVerdicts(t *testing.T) {
	e, k := testEpisodes()
	k.late, k.cause = 2000, "slow-command"
	story(e, k, 0, 2600, func(at int64) bool { return at >= 100 })
	if len(k.begun) != 1 {
		t.Errorf("incidents begin at %v, %d", k.begun, testTime)
	}
}

// TestNoStorm: what comes and goes each half minute for five minutes, for one cause, is one incident.
func TestNoStorm(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	story(e, k, 0, 500, func(at int64) bool { return at >= 100 && at < 400 && at%30 < 3 })
	if len(k.begun) != 1 {
		t.Errorf("%d incidents: %q", len(k.begun), k.said)
	}
	story(e, k, 500, 1500, func(at int64) bool { return at >= 1400 && at < 1405 })
	if len(k.begun) != 2 {
		t.Errorf("%d incidents, want another one after the cool-down", len(k.begun))
	}
}

// TestEachMinute: what comes back all day, always for the same cause, makes some incidents and not hundreds.
func TestEachMinute(t *testing.T) {
	e, k := testEpisodes()
	k.cause = "slow-command"
	story(e, k, 0, 24*3600, func(at int64) bool { return at%90 < 2 })
	if len(k.begun) > 5 || k.looks > 24*3600/mostApart+10 {
		t.Errorf("%d incidents, %d looks", len(k.begun), k.looks)
	}
}

const otherNode = "10.0.0.9:6379"

// ofNodes plays seconds in which calls of some nodes are slow.
func ofNodes(e *episodes, k *fakeKeeper, from, to int64, slow map[string]func(int64) bool) {
	for at := from; at < to; at++ {
		var all []live.Second
		for node, is := range slow {
			s := second(testTime+at, live.Users, 100, 0, 0)
			if is(at) {
				s = second(testTime+at, live.Users, 100, 50, 20*time.Millisecond)
			}
			s.Node = node
			all = append(all, s)
		}
		k.now = testTime + at + 1
		e.take(all)
		e.step(k.now)
		for _, done := range k.judged {
			done()
		}
		k.judged = nil
	}
}

// TestNodes: nodes whose calls begin to be slow at the same time are one incident; those that begin later are another
// one, also while the first goes on, and each ends by itself.
func TestNodes(t *testing.T) {
	between := func(from, to int64) func(int64) bool { return func(at int64) bool { return at >= from && at < to } }
	for want, second := range map[string]func(int64) bool{
		otherNode + " " + testNode:    between(100, 110),
		testNode + " | " + otherNode:  between(105, 140),
		testNode + " |  " + otherNode: between(130, 140),
		testNode + " ":                between(0, 0),
	} {
		e, k := testEpisodes()
		k.cause = "slow-command"
		ofNodes(e, k, 0, 300, map[string]func(int64) bool{testNode: between(100, 120), otherNode: second})
		if got := strings.Join(k.nodes, " | "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("incidents of %q, want %q: %q", got, want, k.said)
		}
		if e.busy() || e.going() {
			t.Errorf("%q: they do not end: %q", want, k.said)
		}
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
	if got := k.said[len(k.said)-1]; got != "102: judge 1 100 to 102, end 102, final true" {
		t.Errorf("got %q", got)
	}
}
