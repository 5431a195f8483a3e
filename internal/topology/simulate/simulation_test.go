package simulate

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"slowpath/internal/topology/cost"
)

// small is a cluster of ten masters and ten replicas with 200 clients.
func small(kind ChangeKind) Setup {
	return Setup{
		Server: "redis 7.0.15", Size: SizeOf(10, 1, 1), Masters: 10, Replicas: 1, Spread: 5 * time.Millisecond,
		Clients: 200, Calls: 10, InUse: 1000, RTT: time.Millisecond, Duration: 2 * time.Minute, Seed: 1,
		Change: Change{
			Kind: kind, At: 10 * time.Second, Slots: 100, PerSecond: 20, Promotion: 6 * time.Second,
			Back: 20 * time.Second, Loading: 10 * time.Second,
		},
		Costs: map[cost.Command]time.Duration{cost.Nodes: time.Millisecond, cost.Slots: time.Millisecond},
	}
}

func simulated(t *testing.T, s Setup, policy string) Result {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	p, err := ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), s, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPeriodicCost: 200 clients that each ask 20 nodes every minute.
func TestPeriodicCost(t *testing.T) {
	r := simulated(t, small(NoChange), "lettuce-6-periodic")
	within(t, "commands per second", r.Commands.PerSecond, 200*20/60.0, 0.02)
	within(t, "share of a master", r.CPUMasters, 200/60.0*0.001, 0.02)
	within(t, "share of a replica", r.CPUReplicas, 200/60.0*0.001, 0.02)
	if r.Moved.Count != 0 || r.Stale != (Stale{}) {
		t.Errorf("without a change: %+v", r)
	}
	replicas := simulated(t, small(NoChange), "lettuce-6-periodic,ask=replicas")
	if replicas.CPUMasters != 0 || replicas.CPUReplicas != r.CPUReplicas {
		t.Errorf("of replicas only: %v and %v", replicas.CPUMasters, replicas.CPUReplicas)
	}
	within(t, "one node each", simulated(t, small(NoChange), "lettuce-6-periodic,ask=one").Commands.PerSecond, 200/60.0,
		0.02)
}

// TestNeverRefreshed: a tenth of all calls gets MOVED for ever, once all slots have moved.
func TestNeverRefreshed(t *testing.T) {
	r := simulated(t, small(Slots), "lettuce-6")
	within(t, "MOVED per second at most", r.Moved.Most, 200*10*0.1, 0.25)
	if r.Stale.Never != 1 || r.Commands.Count != 0 {
		t.Errorf("%+v", r)
	}
	if patched := simulated(t, small(Slots), "lettuce-6,patch=true"); patched.Moved.Count != 200*100 &&
		patched.Stale.Never == 0 || patched.Moved.Count > 200*100 {
		t.Errorf("each client gets MOVED once for each slot: %+v", patched.Moved)
	}
}

// TestPushed: all clients know a change when it is published.
func TestPushed(t *testing.T) {
	for _, kind := range []ChangeKind{Slots, Failover, Hang, Rejoin} {
		r := simulated(t, small(kind), "push,push=40ms")
		last := time.Duration(r.Stale.LastNs).Round(time.Millisecond)
		if last != 40*time.Millisecond || r.Stale.Never != 0 || r.Commands.Count != 0 {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// TestGuardPeriod: triggers within the guard period of Lettuce are lost; those of go-redis are made up for.
func TestGuardPeriod(t *testing.T) {
	lettuce := simulated(t, small(Slots), "lettuce-6-adaptive")
	if n := lettuce.Refresh.Count; n < 200 || n > 200*4 {
		t.Errorf("%d refreshes in 110 s", n)
	}
	short := simulated(t, small(Slots), "lettuce-6-adaptive,guard=1s")
	if short.Refresh.Count <= lettuce.Refresh.Count || short.Stale.MedianNs >= lettuce.Stale.MedianNs ||
		short.Moved.Count >= lettuce.Moved.Count {
		t.Errorf("a shorter guard period: %+v, else %+v", short, lettuce)
	}
	s := small(Slots)
	s.Change.Slots, s.Change.PerSecond, s.InUse, s.Duration = 2, 20, 2, 20*time.Second
	lost := simulated(t, s, "go-redis,guard=5s,deferred=false,period=0")
	made := simulated(t, s, "go-redis,guard=5s,period=0")
	if made.Stale.LastNs >= lost.Stale.LastNs || made.Stale.LastNs > 5.1e9 {
		t.Errorf("deferred: %+v\nlost: %+v", made, lost)
	}
}

// TestMapFetchedTooEarly: the connection to the dead master fails before its replica takes over. The refresh at once
// returns the old map, and the next one is not allowed before the guard period is over.
func TestMapFetchedTooEarly(t *testing.T) {
	s := small(Failover)
	r := simulated(t, s, "lettuce-6-adaptive")
	if r.Early < s.Clients {
		t.Errorf("%d refreshes came too early", r.Early)
	}
	if least := 30*time.Second - s.Change.Promotion; time.Duration(r.Stale.MedianNs) < least || r.Failed.Count == 0 {
		t.Errorf("old for %v, want %v at least: %+v", time.Duration(r.Stale.MedianNs), least, r)
	}
	if seven := simulated(t, s, "lettuce-7"); time.Duration(seven.Stale.MedianNs) > 15*time.Second {
		t.Errorf("with a guard period of 5 s: old for %v", time.Duration(seven.Stale.MedianNs))
	}
}

// TestHang: a silent master sends no MOVED and refuses no connection. A library whose calls time out and close their
// connections notices; others only with a period.
func TestHang(t *testing.T) {
	s := small(Hang)
	r := simulated(t, s, "lettuce-6-periodic")
	within(t, "a refresh that waits for the silent master, in s", float64(r.SlowestNs)/1e9, 10, 0.01)
	for policy, never := range map[string]float64{
		"lettuce-6": 1, "lettuce-7": 1, "lettuce-7,call-timeout=2s": 0, "lettuce-6-periodic": 0, "jedis": 0,
		"go-redis": 0,
	} {
		r := simulated(t, s, policy)
		if r.Stale.Never != never || r.Moved.Count != 0 {
			t.Errorf("%s: %+v", policy, r)
		}
	}
}

// TestRejoin: the old master answers MOVED when it is back, and who has a new map reads from it while it loads.
func TestRejoin(t *testing.T) {
	r := simulated(t, small(Rejoin), "lettuce-6-periodic")
	if r.Loading.Count == 0 || r.Moved.Count == 0 {
		t.Errorf("%+v", r)
	}
	if old := simulated(t, small(Rejoin), "lettuce-6"); old.Loading.Count != 0 || old.Moved.Count <= r.Moved.Count {
		t.Errorf("without a refresh: %+v", old)
	}
}

// TestChoice: where nodes hear of changes late, one view of many is old; that with the newest epoch is not.
func TestChoice(t *testing.T) {
	s := small(Slots)
	s.Spread = 2 * time.Second
	one := simulated(t, s, "lettuce-7,ask=one,guard=1s")
	newest := simulated(t, s, "lettuce-7,choose=epoch,guard=1s")
	if one.Backward == 0 || newest.Backward >= one.Backward || newest.Stale.MedianNs >= one.Stale.MedianNs {
		t.Errorf("one: %d backward, %+v; newest epoch: %d, %+v", one.Backward, one.Stale, newest.Backward, newest.Stale)
	}
	if r := simulated(t, s, "lettuce-6-periodic,period=5s,ask=one"); r.Stale.Never != 0 {
		t.Errorf("an old view hides a change for good: %+v", r.Stale)
	}
	s = small(Failover)
	s.Change.Promotion = time.Second
	for _, choice := range allChoices {
		if r := simulated(t, s, "lettuce-7,choose="+string(choice)); r.Stale.Never != 0 {
			t.Errorf("%s: %+v", choice, r)
		}
	}
}

// TestTriggers: each of them alone.
func TestTriggers(t *testing.T) {
	s := small(Slots)
	s.Change.NewNode, s.Change.Open, s.Change.Gap = true, time.Second, time.Second
	for policy, refreshes := range map[string]bool{
		"lettuce-7,on=none": false, "lettuce-7,on=moved": true, "lettuce-7,on=ask": true, "lettuce-7,on=unknown": true,
		"lettuce-7,on=reconnect": false, "lettuce-7,on=uncovered": false, "lettuce-7,on=moved+uncovered": true,
	} {
		if r := simulated(t, s, policy); r.Refresh.Count > 0 != refreshes || r.Asks.Count == 0 {
			t.Errorf("%s: %+v", policy, r.Refresh)
		}
	}
	// A map of the gap has slots of no node; the next call to one of them refreshes it.
	without := simulated(t, s, "lettuce-7,on=none,period=5s")
	with := simulated(t, s, "lettuce-7,on=uncovered,period=5s,guard=1s")
	if with.Refresh.Count <= without.Refresh.Count {
		t.Errorf("uncovered slots: %d refreshes, without the trigger %d", with.Refresh.Count, without.Refresh.Count)
	}
	s.Change.NewNode = false
	if r := simulated(t, s, "lettuce-7,on=unknown"); r.Refresh.Count > 0 {
		t.Errorf("all nodes are known: %+v", r)
	}
	if every := simulated(t, small(Slots), "jedis,every=5"); every.Refresh.Count >= every.Moved.Count/4 {
		t.Errorf("every fifth MOVED: %+v, %+v", every.Refresh, every.Moved)
	}
}

// TestQueue: a node does one command after the other, and is never busy for more than all of the time.
func TestQueue(t *testing.T) {
	s := small(Failover)
	s.Clients, s.Costs[cost.Nodes] = 1000, 10*time.Millisecond
	r := simulated(t, s, "lettuce-7")
	if r.CPUMost > 1+1e-6 || r.CPUMost < 0.99 {
		t.Errorf("busy for %v", r.CPUMost)
	}
	if time.Duration(r.SlowestNs) < 5*time.Second {
		t.Errorf("1000 clients ask at once for 10 ms each: the longest refresh took %v", time.Duration(r.SlowestNs))
	}
}

func TestSameSeed(t *testing.T) {
	for _, kind := range ChangeKinds {
		for _, name := range Presets() {
			s := small(kind)
			s.Clients, s.Duration = 50, time.Minute
			a, b := simulated(t, s, name), simulated(t, s, name)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s, %s:\n%+v\n%+v", kind, name, a, b)
			}
		}
	}
	s := small(Slots)
	a := simulated(t, s, "jedis")
	if s.Seed++; reflect.DeepEqual(a, simulated(t, s, "jedis")) {
		t.Error("another seed has the same result")
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, _ := ParsePolicy("jedis")
	if _, err := Run(ctx, small(Slots), p); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.Command = cost.Shards
	if _, err := Run(t.Context(), small(Slots), p); !errors.Is(err, ErrSetup) {
		t.Error(err)
	}
}

func TestPoliciesRefused(t *testing.T) {
	for _, text := range []string{
		"", "lettuce", "jedis,", "jedis,x=1", "jedis,period", "jedis,period=-1s", "jedis,period=1ns", "jedis,guard=x",
		"jedis,attempts=0", "jedis,every=1e9", "jedis,on=moved+x", "jedis,ask=two", "jedis,choose=last",
		"jedis,command=get", "jedis,patch=maybe", "jedis,period=9999h",
	} {
		if p, err := ParsePolicy(text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
	p, err := ParsePolicy("lettuce-6-adaptive,on=moved+ask,period=1m,ask=replicas,choose=epoch,guard=5s,push=1s")
	if err != nil || p.Period != time.Minute || len(p.On) != 2 || p.Ask != AskReplicas || p.Choose != ChooseEpoch ||
		p.Guard != 5*time.Second || p.Push != time.Second {
		t.Errorf("%+v, %v", p, err)
	}
	if again, _ := ParsePolicy("lettuce-6-adaptive"); !again.has(OnReconnect) || again.Period != 0 {
		t.Errorf("the preset has changed: %+v", again)
	}
}

func TestSetupsRefused(t *testing.T) {
	for flag, change := range map[string]func(*Setup){
		"--masters":          func(s *Setup) { s.Masters = 1 },
		"--replicas":         func(s *Setup) { s.Replicas = 1000 },
		"--clients":          func(s *Setup) { s.Clients = 0 },
		"less of --clients":  func(s *Setup) { s.Clients, s.Calls = 1000, 1e5 },
		"--calls":            func(s *Setup) { s.Calls = math.NaN() },
		"--slots-in-use":     func(s *Setup) { s.InUse = 16385 },
		"--rtt":              func(s *Setup) { s.RTT = -1 },
		"--spread":           func(s *Setup) { s.Spread = time.Hour },
		"--for":              func(s *Setup) { s.Duration = 12 * time.Second },
		"--change":           func(s *Setup) { s.Change.Kind = "x" },
		"--slots 101":        func(s *Setup) { s.InUse, s.Change.Slots = 100, 101 },
		"--slots-per-second": func(s *Setup) { s.Change.PerSecond = math.Inf(1) },
		"--open":             func(s *Setup) { s.Change.Open = -1 },
		"clients × slots":    func(s *Setup) { s.Clients, s.Change.Slots = 100_000, 1000 },
		"--promotion":        func(s *Setup) { s.Change.Kind, s.Change.Promotion = Failover, -1 },
		"give --replicas 1":  func(s *Setup) { s.Change.Kind, s.Replicas = Failover, 0 },
	} {
		s := small(Slots)
		if change(&s); s.Check() == nil || !strings.Contains(s.Check().Error(), flag) {
			t.Errorf("%s: %v", flag, s.Check())
		}
	}
	if costs, err := CostsOf("redis x", small(Slots).Size); err == nil {
		t.Errorf("%v", costs)
	}
}
