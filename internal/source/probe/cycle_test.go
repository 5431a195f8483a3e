package probe

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/wire/wiretest"
)

// seenCycles collects cycles.
type seenCycles struct {
	mu  sync.Mutex
	all []Cycle
}

func (s *seenCycles) add(c Cycle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, c)
}

func (s *seenCycles) list() []Cycle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// await waits until a cycle is so.
func (s *seenCycles) await(t *testing.T, what string, is func(Cycle) bool) {
	t.Helper()
	await.Until(t, what, func() bool { return slices.ContainsFunc(s.list(), is) })
}

func namesOf(c Cycle) (names []string) {
	for _, s := range c.Steps {
		names = append(names, s.Step)
	}
	return names
}

// TestCycles: the steps are made in turn on the kept connection, their times add up, a stall is in one step and in the
// waits of the cycles that were due in it, and the written key is gone at the end.
func TestCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys atomic.Int64
		s := wiretest.New(t, func(command string) string {
			switch name, _, _ := strings.Cut(command, " "); name {
			case "SET":
				keys.Store(1)
			case "DEL":
				keys.Store(0)
			}
			return quick(command)
		})
		var seen seenCycles
		steps := []string{StepSet, StepGet, StepDel}
		const stall = 300 * time.Millisecond
		rec := inMemory(t, s, Options{Rate: 50, Steps: steps, OnCycle: seen.add}, func(p *probing) {
			seen.await(t, "a cycle", func(c Cycle) bool { return c.Error == "" })
			_, back := p.freeze(s, stall)
			seen.await(t, "a cycle after the stall", func(c Cycle) bool { return c.DueNs > back && c.Error == "" })
		})
		stalled, waited, notSent := 0, 0, 0
		for _, c := range seen.list() {
			if got := c.Felt() + c.Own; c.Error == "" && got != time.Duration(c.EndNs-c.DueNs) {
				t.Errorf("%v of %v: %+v", got, time.Duration(c.EndNs-c.DueNs), c)
			}
			if c.Error == "" && !slices.Equal(namesOf(c), steps) {
				t.Errorf("%+v", c)
			}
			for _, s := range c.Steps {
				if s.Took > stall/2 {
					stalled++
				}
			}
			if c.Wait > stall/2 {
				waited++
			}
			if c.Error == NotSent {
				notSent++
			}
		}
		if stalled != 1 || waited == 0 || notSent == 0 {
			t.Errorf("%d steps stalled, %d cycles waited, of which %d were not sent: %+v", stalled, waited, notSent,
				seen.list())
		}
		if n := keys.Load(); n != 0 {
			t.Errorf("%v keys are left", n)
		}
		for _, c := range rec.Calls {
			if c.Error == "" && !slices.Contains([]string{"SET", "GET", "DEL"}, c.Op) {
				t.Errorf("recorded: %+v", c)
			}
		}
	})
}

// TestRecordedCycles: what --record keeps of fresh cycles are calls, each after the one before.
func TestRecordedCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, quick)
		var seen seenCycles
		rec := inMemory(t, s, Options{
			FreshRate: 50, Steps: []string{StepPing, StepGet}, OnCycle: seen.add,
		}, func(*probing) {
			seen.await(t, "a cycle", func(c Cycle) bool { return c.Error == "" })
		})
		c := seen.list()[0]
		at := slices.IndexFunc(rec.Calls, func(k recording.Call) bool { return k.IntendedNs == c.DueNs })
		next := slices.IndexFunc(rec.Calls, func(k recording.Call) bool { return k.Op == "GET" && k.EndNs == c.EndNs })
		if at < 0 || next < 0 || rec.Calls[at].Op != "PING" || rec.Calls[next].IntendedNs != rec.Calls[at].EndNs ||
			rec.Calls[next].Conn != Fresh {
			t.Errorf("%+v is recorded as %+v", c, rec.Calls)
		}
	})
}
