package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/cluster"
)

// up starts a cluster of lab up, which is stopped at the end of the test.
func up(t *testing.T, server servers.Name, masters, replicas int, spec fleet.Spec) (*fleet.Fleet, servers.Binary) {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), server, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	spec.Fleet = "life"
	if len(spec.Config) == 0 { // on a busy machine no node must seem dead
		spec.Config = []string{"cluster-node-timeout 5000"}
	}
	if _, err := f.Up(t.Context(), bin, masters, replicas, spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := f.Down(context.Background(), "life"); err != nil {
			t.Error(err)
		}
		if left, err := registry.Entries(); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return f, bin
}

// open opens the cluster until the end of the test or close.
func open(t *testing.T, f *fleet.Fleet) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), f, "life")
	if err != nil {
		t.Fatal(err)
	}
	c.Note = func(s string) { t.Log(s) }
	return c
}

// caller follows redirects, as a client of the cluster does.
type caller struct {
	*testing.T
	nodes map[string]*fleet.Conn
	f     *fleet.Fleet
	seen  map[string]int    // redirects, by their code
	at    map[string]string // by key, the node that had it
	all   chan struct{}     // closed once there are all keys, or count has ended
	once  sync.Once         // of that
}

// ask calls until there is another reply than a redirect or an error of a changing cluster.
func (c *caller) ask(args ...string) any {
	c.Helper()
	addr, asking := c.at[args[1]], false
	var err error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		var n *fleet.Conn
		if n, err = c.conn(&addr); err == nil {
			if asking {
				_, _ = n.Do(c.Context(), 0, "ASKING")
			}
			var v any
			if v, err = n.Do(c.Context(), 0, args...); err == nil {
				c.at[args[1]] = addr
				return v
			}
		}
		text := err.Error()
		_, rest, isRedirect := strings.Cut(text, "MOVED ")
		if asking = false; !isRedirect {
			_, rest, asking = strings.Cut(text, "ASK ")
		}
		if isRedirect || asking {
			c.seen[map[bool]string{true: "ASK", false: "MOVED"}[asking]]++
			addr = strings.Fields(rest)[1]
			continue
		}
		if n != nil {
			n.Close()
			delete(c.nodes, addr)
		}
		addr = ""
		await.Pass(20 * time.Millisecond) // as a client does before it tries again
	}
	c.Errorf("%q: %v", args, err)
	return nil
}

// conn is a connection to a node; to any one where addr is empty.
func (c *caller) conn(addr *string) (*fleet.Conn, error) {
	nodes, err := c.f.ClusterOf("life")
	if err != nil {
		return nil, err
	}
	for _, i := range nodes {
		if *addr != "" && i.Addr != *addr || !i.Running() {
			continue
		}
		*addr = i.Addr
		if c.nodes[i.Addr] == nil {
			if c.nodes[i.Addr], err = i.Connect(c.Context()); err != nil {
				delete(c.nodes, i.Addr)
				return nil, err
			}
		}
		return c.nodes[i.Addr], nil
	}
	return nil, fmt.Errorf("no node at %s", *addr)
}

func newCaller(t *testing.T, f *fleet.Fleet) *caller {
	c := &caller{
		T: t, f: f, nodes: map[string]*fleet.Conn{}, seen: map[string]int{}, at: map[string]string{},
		all: make(chan struct{}),
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.Close()
		}
	})
	return c
}

const keys = 1000

// count increments every key again and again; a key that was lost or served by two nodes has another number at the end.
func (c *caller) count(ctx context.Context) (rounds int) {
	counted := func() { c.once.Do(func() { close(c.all) }) }
	defer counted()
	for ctx.Err() == nil {
		if rounds == 1 {
			counted()
		}
		rounds++
		for k := range keys {
			if got := c.ask("INCR", fmt.Sprint("key:", k)); got != int64(rounds) {
				c.Errorf("key:%d: %v in round %d", k, got, rounds)
				return rounds
			}
			await.Pass(100 * time.Microsecond) // the servers have more to do
		}
	}
	return rounds
}

// TestLifeUnderLoad: nodes join and leave, slots move and replicas take over while every key is incremented again and
// again: no call fails, and no increment is lost or made twice.
func TestLifeUnderLoad(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	for _, test := range []struct {
		server servers.Name
		spec   fleet.Spec
	}{
		{servers.Redis6016, fleet.Spec{}},
		{servers.Redis7015, fleet.Spec{TLS: true, Password: "secret"}},
		{servers.Valkey811, fleet.Spec{Password: "secret"}},
	} {
		if test.server != servers.Redis7015 && !needs.InLong() {
			continue
		}
		t.Run(string(test.server), func(t *testing.T) {
			t.Parallel()
			f, bin := up(t, test.server, 3, 1, test.spec)
			ctx, end := context.WithCancel(t.Context())
			calls := newCaller(t, f)
			var rounds int
			var wg sync.WaitGroup
			wg.Go(func() { rounds = calls.count(ctx) })
			defer wg.Wait()
			defer end()
			<-calls.all
			life(t, f, bin)
			end()
			wg.Wait()
			if rounds < 2 || calls.seen["MOVED"] == 0 {
				t.Errorf("%d rounds, redirects %v", rounds, calls.seen)
			}
			t.Logf("%d rounds of %d calls, redirects %v", rounds, keys, calls.seen)
		})
	}
}

// life adds a master and its replica, moves slots, changes their roles, and removes both.
func life(t *testing.T, f *fleet.Fleet, bin servers.Binary) {
	c := open(t, f)
	defer c.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pace := Pace{KeysAtOnce: 1}
	m, err := c.Add(t.Context(), bin, Addition{Slots: 120, Pace: pace})
	must(err)
	if m.Moved.Slots != 120 || m.Moved.Keys == 0 {
		t.Errorf("%+v", m)
	}
	r, err := c.Add(t.Context(), bin, Addition{ReplicaOf: m.Node.Addr})
	must(err)
	first := c.masters()[0].Addr
	moved, err := c.Reshard(t.Context(), first, strconv.Itoa(m.Node.Port), 30, pace)
	must(err)
	if moved.Slots != 30 || moved.Stopped {
		t.Errorf("%+v", moved)
	}
	took, err := c.Failover(t.Context(), m.Node.Addr, Agreed)
	must(err)
	if took.From != m.Node.Addr || took.To != r.Node.Addr || len(slotsIn(took.Slots)) != 150 {
		t.Errorf("%+v", took)
	}
	left, err := c.Remove(t.Context(), r.Node.Addr, pace) // now the master
	must(err)
	if left.Moved.Slots != 150 || left.Moved.Keys == 0 {
		t.Errorf("%+v", left)
	}
	_, err = c.Remove(t.Context(), m.Node.Addr, pace)
	must(err)
	if len(c.nodes) != 6 || c.Like().Addr == "" {
		t.Errorf("%d nodes", len(c.nodes))
	}
	for _, n := range c.nodes {
		if len(n.view.Nodes) != 6 || len(n.view.Uncovered()) > 0 {
			t.Errorf("%s knows %v", n.Addr, n.view)
		}
	}
	if nodes, err := f.ClusterOf("life"); err != nil || len(nodes) != 6 {
		t.Errorf("%d nodes are registered, %v", len(nodes), err)
	}
}

func slotsIn(ranges []cluster.Range) []uint16 { return slotsOf(cluster.Node{Ranges: ranges}) }

// TestKilledMaster: a replica is elected, and what is left of the master is removed.
func TestKilledMaster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, bin := up(t, servers.Redis7015, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 1000"}})
	c := open(t, f)
	defer c.Close()
	if err := c.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := c.masters()[0]
	replica := c.replicasOf(dead.id)[0]
	took, err := c.Failover(t.Context(), replica.Addr, Killed)
	if err != nil {
		t.Fatal(err)
	}
	if took.From != dead.Addr || took.To != replica.Addr || dead.Running() {
		t.Errorf("%+v", took)
	}
	var misuse Misuse
	if _, err := c.Reshard(t.Context(), dead.Addr, replica.Addr, 1, Pace{}); !errors.As(err, &misuse) ||
		!strings.Contains(err.Error(), "del-node") {
		t.Errorf("reshard from a dead node: %v", err)
	}
	if _, err := c.Remove(t.Context(), dead.Addr, Pace{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", dead.Dir, err)
	}
	if _, err := c.Failover(t.Context(), replica.Addr, Killed); !errors.As(err, &misuse) ||
		!strings.Contains(err.Error(), "add-node") {
		t.Errorf("without a replica: %v", err)
	}
	r, err := c.Add(t.Context(), bin, Addition{ReplicaOf: replica.Addr})
	if err != nil {
		t.Fatal(err)
	}
	if took, err = c.Failover(t.Context(), r.Node.Addr, Forced); err != nil || took.To != r.Node.Addr {
		t.Errorf("%+v, %v", took, err)
	}
}

// TestStopOfAWait: the end of ctx ends the wait for an election.
func TestStopOfAWait(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, _ := up(t, servers.Redis7015, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 600000"}})
	c := open(t, f)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c.Note = func(s string) {
		if strings.Contains(s, "is killed") {
			cancel()
		}
	}
	if err := c.settle(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Failover(ctx, c.masters()[0].Addr, Killed); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}

// TestStopAndGoOn: a move that ctx ends leaves no slot open, and one that was broken off is ended by the next.
func TestStopAndGoOn(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, _ := up(t, servers.Redis7015, 3, 0, fleet.Spec{})
	c := open(t, f)
	if _, err := Open(t.Context(), f, "life"); !errors.Is(err, fleet.ErrBusy) {
		t.Errorf("opened twice: %v", err)
	}
	calls := newCaller(t, f)
	tag := "{" + cluster.TagForSlot(0) + "}"
	for k := range 50 {
		calls.ask("SET", tag+strconv.Itoa(k), "1")
	}
	if err := c.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	from, to := c.masters()[0], c.masters()[1]
	ctx, cancel := context.WithCancel(t.Context())
	pace := Pace{KeysAtOnce: 1, Pause: time.Hour, Progress: func(Moved) { cancel() }}
	done, err := c.Reshard(ctx, from.Addr, to.Addr, 10, pace)
	if err != nil || !done.Stopped || done.Slots != 1 || done.Keys != 50 {
		t.Fatalf("%+v, %v", done, err)
	}
	if broken, marked := c.openSlots(); len(broken)+len(marked) > 0 {
		t.Errorf("open: %v, %v", broken, marked)
	}
	// and one that a killed process left: half of the keys are at the new owner
	if _, err := from.do(t.Context(), "CLUSTER", "SETSLOT", "0", "IMPORTING", to.id); err != nil {
		t.Fatal(err)
	}
	if _, err := to.do(t.Context(), "CLUSTER", "SETSLOT", "0", "MIGRATING", from.id); err != nil {
		t.Fatal(err)
	}
	if n, err := (move{0, to, from}).migrate(t.Context(), "0", 25); n != 25 || err != nil {
		t.Fatal(n, err)
	}
	c.Close()
	c = open(t, f)
	defer c.Close()
	var said []string
	c.Note = func(s string) { said = append(said, s) }
	if _, err := c.Reshard(t.Context(), from.Addr, to.Addr, 2, Pace{KeysAtOnce: 7}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "slot 0 was left") }) {
		t.Errorf("said %q", said)
	}
	for k := range 50 {
		if got := calls.ask("GET", tag+strconv.Itoa(k)); got != "1" {
			t.Errorf("key %d: %v", k, got)
		}
	}
	if broken, marked := c.openSlots(); len(broken)+len(marked) > 0 {
		t.Errorf("open: %v, %v", broken, marked)
	}
}

// TestRefusals: what cannot be done is refused before anything is changed, in one line that says what to do instead.
func TestRefusals(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, bin := up(t, servers.Redis7015, 2, 0, fleet.Spec{})
	c := open(t, f)
	defer c.Close()
	if err := c.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := c.masters()[0].Addr, c.masters()[1].Addr
	reshard := func(from, to string, slots int) error {
		_, err := c.Reshard(t.Context(), from, to, slots, Pace{})
		return err
	}
	for _, test := range []struct {
		name, want string
		do         func() error
	}{
		{"unknown node", "give one of: ", func() error { return reshard("1", b, 1) }},
		{"to itself", "two masters", func() error { return reshard(a, a, 1) }},
		{"too many", "give 1 to 8192", func() error { return reshard(a, b, 9000) }},
		{"too many for a new one", "give 0 to 16382", func() error {
			_, err := c.Add(t.Context(), bin, Addition{Slots: 16383})
			return err
		}},
		{"no replica", "add-node --name life --replica-of " + a, func() error {
			_, err := c.Failover(t.Context(), a, Agreed)
			return err
		}},
		{"no majority", "or fail over without --kill", func() error {
			_, err := c.Failover(t.Context(), a, Killed)
			return err
		}},
	} {
		err := test.do()
		var misuse Misuse
		if !errors.As(err, &misuse) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if _, err := Open(t.Context(), f, "other"); err == nil || !strings.Contains(err.Error(), `by the name "other"`) {
		t.Errorf("no such cluster: %v", err)
	}
	if len(c.nodes) != 2 {
		t.Errorf("%d nodes", len(c.nodes))
	}
	if err := c.settle(t.Context()); err != nil || len(c.nodes[0].view.Nodes) != 2 {
		t.Errorf("%v, %v", c.nodes[0].view, err)
	}
}

// TestLastMaster is not removed.
func TestLastMaster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, _ := up(t, servers.Redis7015, 1, 0, fleet.Spec{})
	c := open(t, f)
	defer c.Close()
	var misuse Misuse
	if _, err := c.Remove(t.Context(), c.Like().Addr, Pace{}); !errors.As(err, &misuse) ||
		!strings.Contains(err.Error(), "lab down") {
		t.Error(err)
	}
}

// TestJoinIsUndone: a server that cannot join is stopped, and forgotten by all.
func TestJoinIsUndone(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	f, bin := up(t, servers.Redis7015, 3, 0, fleet.Spec{})
	c := open(t, f)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c.Note = func(s string) {
		if strings.Contains(s, "joins") {
			cancel()
		}
	}
	if _, err := c.Add(ctx, bin, Addition{}); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if nodes, err := f.ClusterOf("life"); err != nil || len(nodes) != 3 {
		t.Errorf("%d nodes are registered, %v", len(nodes), err)
	}
	if err := c.settle(t.Context()); err != nil || len(c.nodes[0].view.Nodes) != 3 {
		t.Errorf("%v, %v", c.nodes[0].view, err)
	}
}
