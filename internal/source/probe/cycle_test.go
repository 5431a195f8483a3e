package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
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
	for deadline := time.Now().Add(time.Minute); !slices.ContainsFunc(s.list(), is); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited too long for ", what)
		}
	}
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
	i := redis(t)
	var seen seenCycles
	steps := []string{StepSet, StepGet, StepDel}
	stall := 300 * time.Millisecond
	rec := run(t, Options{Node: i.Addr, Rate: 50, Steps: steps, OnCycle: seen.add}, func(p *probing) {
		seen.await(t, "a cycle", func(c Cycle) bool { return c.Error == "" })
		if _, err := i.Do(t.Context(), "DEBUG", "SLEEP", fmt.Sprint(stall.Seconds())); err != nil {
			t.Fatal(err)
		}
		back := p.clock.Now()
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
	if stalled == 0 || waited == 0 {
		t.Errorf("%d steps stalled, %d cycles waited, of which %d were not sent: %+v", stalled, waited, notSent,
			seen.list())
	}
	if n, err := i.Do(t.Context(), "DBSIZE"); err != nil || n != int64(0) {
		t.Errorf("%v keys are left: %v", n, err)
	}
	for _, c := range rec.Calls {
		if c.Error == "" && !slices.Contains([]string{"SET", "GET", "DEL"}, c.Op) {
			t.Errorf("recorded: %+v", c)
		}
	}
}

// TestFreshCycles: each cycle logs in on a connection of its own, and errors are those of their step.
func TestFreshCycles(t *testing.T) {
	i := fleettest.Start(t, servers.Redis7015, fleet.Spec{
		Password: "pw", ACL: []string{"user reader on >secret ~slowpath:* +get +client"},
	})
	for user, want := range map[string]string{":pw": "", "reader:secret": "NOPERM"} {
		var seen seenCycles
		run(t, Options{
			Node: "redis://" + user + "@" + i.Addr, FreshRate: 50, Steps: []string{StepAuth, StepGet, StepSet},
			OnCycle: seen.add,
		}, func(*probing) {
			seen.await(t, "a cycle", func(c Cycle) bool { return len(c.Steps) == 4 })
		})
		c := seen.list()[0]
		if c.Conn != Fresh || !slices.Equal(namesOf(c), []string{"connect", "auth", "get", "set"}) || c.Error != want ||
			c.Steps[3].Error != want || c.Steps[2].Error != "" {
			t.Errorf("%s: %+v", user, c)
		}
		for _, s := range c.Steps {
			if s.Took <= 0 {
				t.Errorf("%s: %+v", user, c)
			}
		}
	}
}

// TestEchoes: the kernel of a server's host answers while the server's process is stopped, and a closed port does not.
func TestEchoes(t *testing.T) {
	i := redis(t)
	server := netip.MustParseAddrPort(i.Addr)
	echoes := []Echo{TCPEcho(server)}
	if e, err := ICMPEcho(server.Addr()); err == nil {
		echoes = append(echoes, e)
	} else {
		t.Log("without ICMP: ", err)
	}
	var seen seenCycles
	run(t, Options{
		Node: i.Addr, Rate: 20, Steps: []string{StepPing}, Beside: echoes, OnCycle: seen.add,
	}, func(p *probing) {
		seen.await(t, "a cycle", func(c Cycle) bool { return c.Error == "" })
		if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := p.clock.Now()
		time.Sleep(300 * time.Millisecond) // a cycle waits meanwhile
		if err := syscall.Kill(i.PID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		seen.await(t, "a cycle after the stop", func(c Cycle) bool { return c.DueNs > stopped && c.Error == "" })
	})
	waited := false
	for _, c := range seen.list() {
		if len(c.Steps) == 0 { // not sent, or the watch ended
			continue
		}
		if took := c.Steps[0].Took; took > 200*time.Millisecond {
			waited = true
		}
		for _, e := range echoes {
			if _, ok := c.Beside[e.Name]; !ok {
				t.Errorf("no answer to %s: %+v", e.Name, c)
			}
		}
	}
	if !waited {
		t.Errorf("no cycle waited for the stopped server: %+v", seen.list())
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &prober{Options: Options{Beside: echoes[:1]}}
	if answers := p.beside(t.Context())(); len(answers) != 0 {
		t.Errorf("nothing listens, and the echo took %v", answers)
	}
}

// TestRecordedCycles: what --record keeps of fresh cycles are calls, each after the one before.
func TestRecordedCycles(t *testing.T) {
	i := redis(t)
	var seen seenCycles
	rec := run(t, Options{
		Node: i.Addr, FreshRate: 50, Steps: []string{StepPing, StepGet}, OnCycle: seen.add,
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
}
