package agent

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
)

// budgeted is a budget of 1 % of a core and 64 MB, with a clock of its own.
type budgeted struct {
	*budget
	now time.Time
	cpu time.Duration
	log strings.Builder
}

func newBudgeted() *budgeted {
	b := &budgeted{now: time.Now()}
	a := &Agent{log: NewLog(&b.log, false), view: live.New(live.Options{}), changed: make(chan struct{}, 1)}
	a.settings.Store(&Settings{CPUBudget: DefaultCPUBudget, Memory: DefaultMemory})
	b.budget = newBudget(a)
	b.began = b.now
	return b
}

// pass lets time go by while this process takes a share of a core. It reports how often the watch began again.
func (b *budgeted) pass(d time.Duration, core float64) (restarts int) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(measureEvery)
		b.cpu += time.Duration(core * float64(measureEvery))
		b.measure(b.now, b.cpu, 40<<20)
		select {
		case <-b.a.changed:
			restarts++
			b.began = b.now
		default:
		}
	}
	return restarts
}

func (b *budgeted) options() source.Options {
	o := source.Options{ProbeRate: 1}
	b.reduce(&o)
	return o
}

// TestAgentBudget: what costs too much for longer than the begin of a watch is done more rarely, and taken up again the
// same way after there was room for long.
func TestAgentBudget(t *testing.T) {
	b := newBudgeted()
	if n := b.pass(settleTime/3, 0.9) + b.pass(time.Hour, 0.008); n != 0 || b.Cost().Over != "" || b.times != 1 {
		t.Errorf("given up within the budget, or for the begin of a watch: %+v", b.Cost())
	}
	if n := b.pass(40*time.Second, 0.011); n != 0 || b.options().Pace.Times() != 2 {
		t.Errorf("%d restarts, %+v: a bit above the budget, things are done more rarely", n, b.options())
	}
	if n := b.pass(40*time.Second, 0.03); n != 0 || b.options().Pace.Times() != 8 {
		t.Errorf("%d restarts, %+v: three times above it, much more rarely", n, b.options())
	}
	if n := b.pass(20*time.Minute, 0.012); n != 0 || b.options().Pace.Times() != mostPace ||
		!strings.Contains(b.Cost().Over, "may take 1.0 % (--cpu-budget)") {
		t.Errorf("%d restarts for a fifth above the budget: %+v", n, b.Cost())
	}
	n := b.pass(10*time.Minute, 0.014)
	if o := b.options(); n != 1 || o.TapBudget != tap.DefaultBudget/3 || o.NoHost || !b.Cost().Sampled {
		t.Errorf("connections are left out then, %d restarts: %+v", n, o)
	}
	if n := b.pass(5*time.Hour, 0.02); n != 0 || b.Cost().Over == "" {
		t.Errorf("then it is said, %d restarts: %+v, %s", n, b.Cost(), b.log.String())
	}
	if b.pass(20*time.Minute, 0.001); !b.sampled {
		t.Error("taken up again after 20 minutes")
	}
	b.pass(2*time.Hour, 0.001)
	if o := b.options(); o.TapBudget != 0 || o.Pace.Times() != 1 || b.Cost().Over != "" || b.Cost().Reduced != "" {
		t.Errorf("after two hours: %+v, %+v", o, b.Cost())
	}
}

// TestAgentBudgetIsSaidSoon: half a minute above the budget is enough for health, also while there is more to give up.
func TestAgentBudgetIsSaidSoon(t *testing.T) {
	b := newBudgeted()
	if b.pass(20*time.Second, 0.05); b.Cost().Over != "" {
		t.Errorf("the begin of a watch is taken for what it costs: %+v", b.Cost())
	}
	if b.pass(20*time.Second, 0.05); b.Cost().Over == "" {
		t.Errorf("nothing is said of 5 %%: %+v", b.Cost())
	}
	if b.pass(2*time.Minute, 0.005); b.Cost().Over != "" {
		t.Errorf("it is still said: %+v", b.Cost())
	}
	b.now = b.now.Add(measureEvery)
	if b.measure(b.now, b.cpu, 70<<20); !strings.Contains(b.Cost().Over, "may take 67.1 MB (--memory)") {
		t.Errorf("nothing is said of 70 MiB: %+v", b.Cost())
	}
}

// TestAgentBudgetOfAllProcesses: what the agent's other process takes counts, too; that it has ended is no error.
func TestAgentBudgetOfAllProcesses(t *testing.T) {
	b := newBudgeted()
	_, own := b.used()
	b.other.Store(int64(os.Getpid()))
	if _, both := b.used(); own > 0 && (both < own*3/2 || both > own*5/2) {
		t.Errorf("two processes of %d bytes take %d", own, both)
	}
	b.other.Store(math.MaxInt32) // above the kernel's highest process id
	if _, left := b.used(); left > own*5/4 {
		t.Errorf("%d bytes without the other process, %d before", left, own)
	}
}

// TestAgentBudgetOfManyServers: many servers are asked as rarely as they can be from the begin, and no more rarely than
// that is needed.
func TestAgentBudgetOfManyServers(t *testing.T) {
	for servers, want := range map[int]int64{0: 1, 1: 1, 4: 1, 5: 2, 10: 4, 30: 8, 1000: mostPace} {
		b := newBudgeted()
		b.watchBegins(servers)
		b.began = b.now
		if got := b.options().Pace.Times(); got != want {
			t.Errorf("%d servers are asked %d times as rarely, want %d", servers, got, want)
		}
		if b.pass(time.Hour, 0.001); b.options().Pace.Times() != 1 {
			t.Errorf("%d servers that cost nothing are asked %d times as rarely", servers, b.options().Pace.Times())
		}
	}
}

// TestAgentBudgetOfAnIncident: while calls are slow, recording them may cost five times as much; that is no reason to
// see less afterwards. Servers are asked more often meanwhile.
func TestAgentBudgetOfAnIncident(t *testing.T) {
	b := newBudgeted()
	b.watchBegins(60)
	b.began = b.now
	b.pass(10*time.Minute, 0.009)
	for end := b.now.Add(5 * time.Minute); b.now.Before(end); {
		b.incident = b.now // as at the tick before
		if b.pass(measureEvery, 0.04); b.times != mostPace || b.options().Pace.Times() != mostPace/incidentPace {
			t.Fatalf("asked %d times as rarely within five times the budget", b.options().Pace.Times())
		}
	}
	if b.pass(time.Hour, 0.009); b.options().Pace.Times() != mostPace || b.sampled {
		t.Errorf("asked %d times as rarely after it", b.options().Pace.Times())
	}
	b.times = 1
	b.incident = b.now.Add(30 * time.Minute)
	if b.pass(3*time.Minute, 0.06); b.times == 1 {
		t.Error("asked as often as before above that")
	}
}
