package agent

import (
	"strings"
	"testing"
	"time"

	"slowpath/internal/live"
)

const (
	testNode = "127.0.0.1:6379"
	testTime = int64(1_800_000_000) // Unix seconds
)

// second has calls of 1 ms, and slow ones of this length.
func second(unix int64, whose live.Whose, calls, slow int64, length time.Duration) live.Second {
	s := live.Second{Unix: unix, Node: testNode, Whose: whose, Calls: calls, Slow: slow}
	s.Latencies.Add(int64(time.Millisecond), calls-slow)
	s.Latencies.Add(int64(length), slow)
	return s
}

func testTriggers(goals ...Goal) *triggers {
	return newTriggers(func() time.Duration { return 5 * time.Millisecond }, goals, map[Kind]bool{})
}

// TestTriggers: what somebody notices, and what nobody does.
func TestTriggers(t *testing.T) {
	failing := func(calls, failed int64) live.Second {
		s := second(0, live.Users, calls, 0, 0)
		s.Failed = failed
		return s
	}
	const ms = time.Millisecond
	own := func(slow int64, length time.Duration) live.Second { return second(0, live.Own, 10, slow, length) }
	for name, c := range map[string]struct {
		newest live.Second // the others are healthy
		goals  []Goal
		want   Kind
	}{
		"healthy":                             {newest: second(0, live.Users, 1000, 0, 0)},
		"few slow calls":                      {newest: second(0, live.Users, 1000, 3, 20*ms)},
		"many slow calls":                     {newest: second(0, live.Users, 1000, 300, 20*ms), want: SlowCalls},
		"one long call":                       {newest: second(0, live.Users, 1000, 1, 150*ms), want: SlowCalls},
		"few calls, most of the time":         {newest: second(0, live.Users, 1000, 12, 99*ms), want: SlowCalls},
		"many callers wait for a short stall": {newest: second(0, live.Users, 20_000, 150, 12*ms)},
		"errors":                              {newest: failing(1000, 400), want: FailedCalls},
		"few errors":                          {newest: failing(1000, 5)},
		"goal missed": {
			newest: second(0, live.Users, 1000, 0, 0), goals: []Goal{{0.99, ms / 2}}, want: OverGoal,
		},
		"goal met":                     {newest: second(0, live.Users, 1000, 0, 0), goals: []Goal{{0.99, 2 * ms}}},
		"own calls slow, users' quick": {newest: own(8, 20*ms)},
	} {
		t.Run(name, func(t *testing.T) {
			tr := testTriggers(c.goals...)
			for i := range int64(60) {
				healthy := second(testTime+i, live.Users, 100, 0, 0)
				if len(c.goals) > 0 {
					healthy = second(testTime+i, live.Users, 1, 0, 0)
				}
				tr.add([]live.Second{healthy})
			}
			c.newest.Unix = testTime + 60
			tr.add([]live.Second{c.newest})
			got := tr.firing(testTime+61, false)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("fires: %+v", got)
			case c.want != "" && (len(got) != 1 || got[0].Kind != c.want):
				t.Errorf("got %+v, want %s", got, c.want)
			case c.want != "" && c.want != OverGoal && got[0].Since != testTime+60:
				t.Errorf("since %d, want %d", got[0].Since, testTime+60)
			}
		})
	}
}

// TestOwnCalls: where no client calls, slowpath's own calls say how the server is.
func TestOwnCalls(t *testing.T) {
	for name, c := range map[string]struct {
		slow, failed int64
		want         Kind
	}{"healthy": {}, "slow": {slow: 1, want: SlowCalls}, "gone": {failed: 1, want: FailedCalls}} {
		tr := testTriggers()
		for i := range int64(6) {
			s := second(testTime+i, live.Own, 1, c.slow, 20*time.Millisecond)
			s.Failed = c.failed
			tr.add([]live.Second{s})
		}
		got := tr.firing(testTime+6, false)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Kind != c.want) {
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
	}
}

// TestUsualErrors: an application that lives with error replies is no incident, more of them than before are one.
func TestUsualErrors(t *testing.T) {
	tr := testTriggers()
	at := testTime
	put := func(failed int64) {
		s := second(at, live.Users, 100, 0, 0)
		s.Failed = failed
		tr.add([]live.Second{s})
		at++
	}
	for range 250 {
		put(10)
	}
	if got := tr.firing(at, false); len(got) > 0 {
		t.Errorf("usual errors fire: %+v", got)
	}
	for range 5 {
		put(60)
	}
	if got := tr.firing(at, false); len(got) != 1 || got[0].Kind != FailedCalls {
		t.Errorf("more errors than usual: %+v", got)
	}
}

// TestBegin: what fires begins with the calls that are slow more than before, and not with single ones before them; a
// call that ends after seconds began as much earlier.
func TestBegin(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		slow        map[int64]live.Second // by second; the others are healthy
		since, last int64
	}{
		"single slow calls before it": {map[int64]live.Second{
			50: second(0, live.Users, 100, 1, 8*ms), 53: second(0, live.Users, 100, 1, 8*ms),
			58: second(0, live.Users, 100, 50, 20*ms), 59: second(0, live.Users, 100, 50, 20*ms),
		}, 58, 59},
		"a stall of 4.2 s": {map[int64]live.Second{59: second(0, live.Users, 100, 10, 4200*ms)}, 55, 59},
		"one long call":    {map[int64]live.Second{57: second(0, live.Users, 100, 1, 200*ms)}, 57, 57},
		"each third second": {map[int64]live.Second{
			51: second(0, live.Users, 100, 50, 20*ms), 54: second(0, live.Users, 100, 50, 20*ms),
			57: second(0, live.Users, 100, 50, 20*ms),
		}, 51, 57},
		"no second alone": {map[int64]live.Second{
			53: second(0, live.Users, 100, 3, 20*ms), 55: second(0, live.Users, 100, 3, 20*ms),
			56: second(0, live.Users, 100, 3, 20*ms), 58: second(0, live.Users, 100, 3, 20*ms),
			59: second(0, live.Users, 100, 3, 20*ms), 52: second(0, live.Users, 100, 3, 20*ms),
			54: second(0, live.Users, 100, 4, 20*ms), 57: second(0, live.Users, 100, 4, 20*ms),
		}, 52, 59},
	} {
		tr := testTriggers()
		for at := range int64(60) {
			s, slow := c.slow[at]
			if !slow {
				s = second(0, live.Users, 100, 0, 0)
			}
			s.Unix = testTime + at
			tr.add([]live.Second{s})
		}
		got := tr.firing(testTime+60, false)
		if len(got) != 1 || got[0].Since != testTime+c.since || got[0].Last != testTime+c.last {
			t.Errorf("%s: got %+v, want %d to %d", name, got, testTime+c.since, testTime+c.last)
		}
	}
}

// TestLateSeconds: a second that is read again counts once.
func TestLateSeconds(t *testing.T) {
	tr := testTriggers()
	for range 5 {
		tr.add([]live.Second{second(testTime, live.Users, 100, 2, 20*time.Millisecond)})
	}
	sum := tr.window(population{testNode, live.Users}, testTime+1, 10)
	if sum.calls != 100 || sum.slow != 2 {
		t.Errorf("got %+v", sum)
	}
}

func TestTriggersOff(t *testing.T) {
	tr := newTriggers(func() time.Duration { return 5 * time.Millisecond }, nil, map[Kind]bool{SlowCalls: true})
	tr.add([]live.Second{second(testTime, live.Users, 100, 90, 20*time.Millisecond)})
	if got := tr.firing(testTime+1, false); len(got) > 0 {
		t.Errorf("fires: %+v", got)
	}
}

func TestGoals(t *testing.T) {
	for text, want := range map[string]Goal{
		"p99=10ms": {0.99, 10 * time.Millisecond}, "p99.9=1s": {0.999, time.Second},
		"p50 = 200us": {0.5, 200 * time.Microsecond},
	} {
		if got, err := ParseGoal(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "99=10ms", "p99", "p99=", "p101=1s", "p10=1s", "p99=-1s", "p99=10", "pNaN=1s"} {
		if _, err := ParseGoal(text); err == nil || !strings.Contains(err.Error(), "such as p99=10ms") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
