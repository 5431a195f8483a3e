package probe

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestFreshCycles: each cycle logs in on a connection of its own, and errors are those of their step. What cycles
// wrote and did not delete is gone at the end.
func TestFreshCycles(t *testing.T) {
	needs.Real(t, needs.RedisServer)
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
	if keys, err := i.Do(t.Context(), "DBSIZE"); err != nil || keys != int64(0) {
		t.Errorf("%v keys are left, %v", keys, err)
	}
}

// TestEchoes: the kernel of a server's host answers while the server's process is stopped, and a closed port does not.
func TestEchoes(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	server := netip.MustParseAddrPort(i.Addr)
	echoes := []Echo{TCPEcho(server)}
	if e, err := ICMPEcho(server.Addr()); err == nil {
		echoes = append(echoes, e)
	} else {
		t.Log("without ICMP: ", err)
	}
	var asked atomic.Int64
	counted := echoes[0]
	counted.ask = func(ctx context.Context) error {
		asked.Add(1)
		return echoes[0].ask(ctx)
	}
	var seen seenCycles
	run(t, Options{
		Node: i.Addr, Rate: 20, Steps: []string{StepPing},
		Beside: append([]Echo{counted}, echoes[1:]...), OnCycle: seen.add,
	}, func(p *probing) {
		seen.await(t, "a cycle", func(c Cycle) bool { return c.Error == "" })
		if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped, before := p.clock.Now(), asked.Load()
		await.Until(t, "a cycle begins", func() bool { return asked.Load() > before })
		await.Pass(300 * time.Millisecond) // it waits meanwhile
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
