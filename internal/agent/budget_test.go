package agent

import (
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

// TestAgentBudget: what costs too much for longer than the begin of a watch is given up, one after the other, and taken
// up again the same way after there was room for long.
func TestAgentBudget(t *testing.T) {
	b := newBudgeted()
	if n := b.pass(settleTime/3, 0.9) + b.pass(time.Hour, 0.008); n != 0 || b.Cost().Over() {
		t.Errorf("given up within the budget, or for the begin of a watch: %+v", b.Cost())
	}
	if n := b.pass(2*time.Minute, 0.011) + b.pass(5*time.Minute, 0.005) + b.pass(30*time.Second, 0.03); n != 0 {
		t.Errorf("%d restarts for two minutes a bit above the budget, and half a minute far above it", n)
	}
	if n := b.pass(time.Minute, 0.03); n != 0 || b.level != 1 || b.options().Pace.Times() != slowerPace {
		t.Errorf("%d restarts, level %d, %+v: the first step goes without", n, b.level, b.options())
	}
	if n := b.pass(30*time.Second, 0.03); n != 0 {
		t.Error("the next step comes at once")
	}
	if n := b.pass(stepEvery, 0.001) + b.pass(3*stepEvery, 0.012); n != 0 {
		t.Errorf("%d restarts for a fifth above the budget", n)
	}
	n := b.pass(stepEvery, 0.013)
	if o := b.options(); n != 1 || o.TapBudget != tap.DefaultBudget/3 || o.ProbeRate != 0.2 || o.NoHost {
		t.Errorf("after the second step, %d restarts: %+v", n, o)
	}
	b.pass(time.Hour, 0.02)
	said := strings.Count(b.log.String(), "more than its budget of 1.0 %")
	if o := b.options(); !o.NoHost || b.level != len(steps) || !b.Cost().Over() || said != len(steps) {
		t.Errorf("after all steps: %+v, %+v, %s", o, b.Cost(), b.log.String())
	}
	b.pass(20*time.Minute, 0.001)
	if b.level != len(steps) {
		t.Error("taken up again after 20 minutes")
	}
	b.pass(48*time.Hour, 0.001)
	if b.level != 0 || b.options().ProbeRate != 1 || b.options().Pace.Times() != 1 || b.Cost().Over() {
		t.Errorf("after two days: level %d, %+v", b.level, b.Cost())
	}
}

// TestAgentBudgetOfAnIncident: while calls are slow, recording them may cost five times as much; that is no reason to
// see less afterwards.
func TestAgentBudgetOfAnIncident(t *testing.T) {
	b := newBudgeted()
	b.pass(10*time.Minute, 0.005)
	for end := b.now.Add(5 * time.Minute); b.now.Before(end); {
		b.incident = b.now // as at the tick before
		if b.pass(measureEvery, 0.04); b.level != 0 {
			t.Fatalf("%d steps within five times the budget", b.level)
		}
	}
	if b.pass(time.Hour, 0.009); b.level != 0 {
		t.Errorf("%d steps after it", b.level)
	}
	b.incident = b.now.Add(30 * time.Minute)
	if b.pass(3*time.Minute, 0.06); b.level != 1 {
		t.Errorf("%d steps above it", b.level)
	}
}
