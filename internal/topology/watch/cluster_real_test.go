package watch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
)

// watched is a real cluster with a watch on it.
type watchedCluster struct {
	*testing.T
	cluster *fleet.Cluster
	ids     []string
	end     context.CancelFunc
	ended   chan struct{}
	summary Summary
	err     error

	mu     sync.Mutex
	ready  *Ready
	events []Event
	notes  []string
}

func watchCluster(t *testing.T, name servers.Name, masters, replicas int, spec fleet.Spec, o Options) *watchedCluster {
	t.Helper()
	w := &watchedCluster{
		T: t, cluster: fleettest.StartCluster(t, name, masters, replicas, spec),
		ended: make(chan struct{}),
	}
	for _, n := range w.cluster.Nodes {
		w.ids = append(w.ids, w.do(n, "CLUSTER", "MYID").(string))
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	o.Seeds = []target.Target{at(t, w.cluster.Nodes[0])}
	if o.Seeds[0].Password = spec.Password; len(spec.ACL) > 0 {
		o.Seeds[0].User, o.Seeds[0].Password = "watch", "pw"
	}
	o.PerSecond = max(o.PerSecond, 100)
	o.Ready = func(r Ready) { w.mu.Lock(); w.ready = &r; w.mu.Unlock() }
	o.Event = func(e Event) error { w.mu.Lock(); w.events = append(w.events, e); w.mu.Unlock(); return nil }
	o.Note = func(s string) { w.mu.Lock(); w.notes = append(w.notes, s); w.mu.Unlock() }
	go func() { w.summary, w.err = Watch(ctx, o); close(w.ended) }()
	t.Cleanup(func() {
		cancel()
		<-w.ended
		if w.err != nil {
			t.Error(w.err)
		}
		if t.Failed() {
			t.Logf("events %v\nnotes %q", w.seenEvents(), w.notes)
		}
	})
	w.until("the watch is ready", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ready != nil })
	return w
}

func at(t *testing.T, i *fleet.Instance) target.Target {
	t.Helper()
	tg, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func (w *watchedCluster) do(i *fleet.Instance, args ...string) any {
	w.Helper()
	v, err := i.Do(w.Context(), args...)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

func (w *watchedCluster) until(what string, ok func() bool) {
	w.Helper()
	await.Until(w.T, what, ok)
}

func (w *watchedCluster) seenEvents() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// awaitEvent waits for an event and gives it.
func (w *watchedCluster) awaitEvent(what string, is func(Event) bool) (found Event) {
	w.Helper()
	w.until(what+" is seen", func() bool {
		all := w.seenEvents()
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// move moves an empty slot from one node to another, as redis-cli does: first on the receiver, then on the giver.
func (w *watchedCluster) move(slot, from, to int) {
	w.Helper()
	s, source, destination := strconv.Itoa(slot), w.cluster.Nodes[from], w.cluster.Nodes[to]
	w.do(destination, "CLUSTER", "SETSLOT", s, "IMPORTING", w.ids[from])
	w.do(source, "CLUSTER", "SETSLOT", s, "MIGRATING", w.ids[to])
	w.do(destination, "CLUSTER", "SETSLOT", s, "NODE", w.ids[to])
	w.do(source, "CLUSTER", "SETSLOT", s, "NODE", w.ids[to])
}

// movedTo gives the slots that were seen to move from one node to another.
func (w *watchedCluster) movedTo(from, to int) (slots []uint16) {
	for _, e := range w.seenEvents() {
		if e.Kind != SlotMoved || e.From != w.cluster.Nodes[from].Addr || e.To != w.cluster.Nodes[to].Addr ||
			e.Node != w.ids[to] {
			continue
		}
		for _, r := range e.Slots {
			for s := int(r.From); s <= int(r.To); s++ {
				slots = append(slots, uint16(s))
			}
		}
	}
	return slots
}

// only fails if there were events of other kinds.
func (w *watchedCluster) only(kinds ...Kind) {
	w.Helper()
	for _, e := range w.seenEvents() {
		if !slices.Contains(kinds, e.Kind) {
			w.Errorf("got %v", e)
		}
	}
}

func TestSlotsMove(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, test := range []struct {
		server    servers.Name
		replicas  int
		broadcast bool
	}{
		{servers.Redis6016, 0, false},
		{servers.Redis6214, 1, true},
		{servers.Redis7015, 1, true},
		{servers.Valkey811, 0, true},
	} {
		if (test.server == servers.Redis6214 || test.server == servers.Valkey811) && !needs.InLong() {
			continue // as 7.0
		}
		t.Run(string(test.server), func(t *testing.T) {
			t.Parallel()
			w := watchCluster(t, test.server, 3, test.replicas, fleet.Spec{}, Options{})
			if r := *w.ready; r.Broadcast != test.broadcast || r.Replica != (test.replicas > 0) || r.Masters != 3 ||
				r.Replicas != 3*test.replicas {
				t.Errorf("ready: %+v", r)
			}
			w.move(100, 0, 1)
			w.awaitEvent("the move", func(e Event) bool { return e.Kind == SlotMoved })
			w.move(100, 1, 2) // and on
			w.move(16383, 2, 0)
			w.until("all moves are seen", func() bool {
				return len(w.movedTo(0, 1)) == 1 && len(w.movedTo(1, 2)) == 1 && len(w.movedTo(2, 0)) == 1
			})
			if e := w.seenEvents()[0]; cluster.FormatRanges(e.Slots) != "100" || e.Time.IsZero() {
				t.Errorf("first %+v", e)
			}
			w.only(SlotMoved)
		})
	}
}

func TestReshardingOfManySlots(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 1, fleet.Spec{}, Options{})
	const slots = 200
	for slot := range slots {
		w.move(slot, 0, 2)
	}
	w.until("all slots are seen", func() bool { return len(w.movedTo(0, 2)) >= slots })
	got := w.movedTo(0, 2)
	if text := cluster.FormatRanges(cluster.Ranges(got)); len(got) != slots || text != "0-199" {
		t.Errorf("got %d slots: %s", len(got), text)
	}
	w.only(SlotMoved)
	w.end()
	<-w.ended
	if s := w.summary; s.Slots != slots || s.Kinds[SlotMoved] == 0 || s.Commands == 0 || s.Nodes != 6 {
		t.Errorf("summary %+v", s)
	}
}

// takeOver has a node take over from its master, as soon as it is its replica and in sync.
func (w *watchedCluster) takeOver(i *fleet.Instance) {
	w.Helper()
	asked := time.Time{}
	w.until(i.Addr+" is a master", func() bool {
		reply, err := i.Do(w.Context(), "INFO", "replication")
		text, _ := reply.(string)
		// An attempt may take 5 s. It is refused while the node does not know that it may.
		if err == nil && strings.Contains(text, "master_link_status:up") && time.Since(asked) > 6*time.Second {
			if _, err := i.Do(w.Context(), "CLUSTER", "FAILOVER"); err == nil {
				asked = time.Now()
			}
		}
		return err == nil && strings.Contains(text, "role:master") && !asked.IsZero()
	})
}

// soon is what lets an election that failed on a busy machine begin again: it does after four times this.
var soon = fleet.Spec{Config: []string{"cluster-node-timeout 3000"}}

func TestFailoverOfAKilledMaster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 1000"}}, Options{})
	dead := w.cluster.Nodes[0]
	if err := dead.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	ours := func(k Kind, node string) func(Event) bool {
		return func(e Event) bool { return e.Kind == k && e.Node == node }
	}
	started := w.awaitEvent("the start", ours(FailoverStarted, w.ids[0]))
	ended := w.awaitEvent("the end", ours(FailoverEnded, w.ids[3]))
	if started.From != dead.Addr || started.To != "" || ended.From != dead.Addr || ended.To != w.cluster.Nodes[3].Addr {
		t.Errorf("%+v, %+v", started, ended)
	}
	// It comes back as a replica, which is no failover, and can take over again.
	if err := dead.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.takeOver(dead)
	w.awaitEvent("the way back", ours(FailoverEnded, w.ids[0]))
	w.only(FailoverStarted, FailoverEnded, NodeUnreachable, NodeBack)
}

// TestNodesDieAndFreeze: a node that does not answer is reported once, before the cluster does anything about it, and
// so is its return: of a replica that is stopped, which no failover shows, and of a master that was killed.
func TestNodesDieAndFreeze(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 60000"}}, Options{})
	frozen, dead := w.cluster.Nodes[4], w.cluster.Nodes[0]
	unreachable := func(node int) func(Event) bool {
		return func(e Event) bool {
			return e.Kind == NodeUnreachable && e.Node == w.ids[node] && e.From == w.cluster.Nodes[node].Addr &&
				e.To == ""
		}
	}
	back := func(node int) func(Event) bool {
		return func(e Event) bool {
			return e.Kind == NodeBack && e.Node == w.ids[node] && e.To == w.cluster.Nodes[node].Addr && e.From == ""
		}
	}
	if err := syscall.Kill(frozen.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(frozen.PID, syscall.SIGCONT) })
	w.awaitEvent("the stopped replica", unreachable(4))
	if err := syscall.Kill(frozen.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent("its return", back(4))
	if err := dead.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent("the killed master", unreachable(0))
	if err := dead.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent("the restarted master", back(0))
	if all := w.seenEvents(); len(all) != 4 {
		t.Errorf("got %v", all)
	}
}

func TestNodeJoinsAndIsForgotten(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 0, fleet.Spec{}, Options{})
	fresh := fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"cluster-enabled yes"}})
	id := w.do(fresh, "CLUSTER", "MYID").(string)
	host, port, err := net.SplitHostPort(fresh.Addr)
	if err != nil {
		t.Fatal(err)
	}
	w.do(w.cluster.Nodes[0], "CLUSTER", "MEET", host, port)
	if e := w.awaitEvent("the new node", func(e Event) bool { return e.Kind == NodeJoined }); e.Node != id ||
		e.To != fresh.Addr {
		t.Errorf("%+v", e)
	}
	// A node that does not know the new one yet would learn of it again by gossip: it is forgotten when all know it.
	w.until("all nodes know it", func() bool {
		for _, n := range w.cluster.Nodes {
			if m, err := cluster.ParseNodes(w.do(n, "CLUSTER", "NODES").(string)); err != nil || len(m.Nodes) != 4 {
				return false
			}
		}
		return true
	})
	if err := fresh.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.cluster.Nodes {
		w.do(n, "CLUSTER", "FORGET", id)
	}
	if e := w.awaitEvent("its leave", func(e Event) bool { return e.Kind == NodeLeft }); e.Node != id ||
		e.From != fresh.Addr {
		t.Errorf("%+v", e)
	}
	unheard := func(e Event) bool { return e.Kind == NodeUnreachable } // killed before it was forgotten
	if all := slices.DeleteFunc(w.seenEvents(), unheard); len(all) != 2 {
		t.Errorf("got %v", all)
	}
}

func TestPublishes(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 1, soon, Options{Publish: true})
	messages := w.subscribe(w.cluster.Nodes[2], movedChannel, failoverChannel)
	w.move(7, 0, 1)
	w.until("the move is published", func() bool {
		return slices.Contains(messages(), fmt.Sprintf("%s 7 %s", movedChannel, w.cluster.Nodes[1].Addr))
	})
	w.takeOver(w.cluster.Nodes[5])
	w.until("the failover is published", func() bool {
		return slices.Contains(messages(), fmt.Sprintf("%s 10922-16383 %s", failoverChannel, w.cluster.Nodes[5].Addr))
	})
	if n := len(messages()); n != 2 {
		t.Errorf("%d messages: %q", n, messages())
	}
}

func TestPublishingIsForbidden(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 0,
		fleet.Spec{ACL: []string{"user watch on >pw +cluster|nodes +cluster|slots"}}, Options{Publish: true})
	w.move(7, 0, 1)
	w.awaitEvent("the move", func(e Event) bool { return e.Kind == SlotMoved })
	w.until("the refusal is noted", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.notes, func(s string) bool { return strings.Contains(s, "+publish") })
	})
}
