//go:build linux

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
)

// The nodes that serve reads.
const (
	Master  = "master"
	Replica = "replica" // a replica of the key's master; the master where none is connected
	Any     = "any"     // the master and its replicas in turn
)

// routed: the load has several nodes, or may get them.
func (o *Options) routed() bool {
	return o.Cluster || o.Target.Sentinel != "" || o.ReadFrom != Master
}

// checkRouting refuses unknown options, and those that exclude each other.
func (o *Options) checkRouting() error {
	switch {
	case o.ReadFrom != Master && o.ReadFrom != Replica && o.ReadFrom != Any:
		return fmt.Errorf("read from %q: it is %s, %s or %s", o.ReadFrom, Master, Replica, Any)
	case !o.routed():
		return nil
	case o.Cluster && o.Target.Sentinel != "":
		return fmt.Errorf("%w: a cluster has no sentinels: leave out -c, or name a node of the cluster", ErrOptions)
	case o.Cluster && o.Target.DB != 0:
		return fmt.Errorf("%w: a cluster has one database: leave out -n", ErrOptions)
	case o.PerCall || o.ReconnectEvery > 0 || o.ColdStart || o.Pool > 0 || o.Subscribers > 0:
		return fmt.Errorf("%w: connections for each call, renewed, pooled, cold or subscribing go to one server: "+
			"leave out -c, --read-from or sentinel://, or those", ErrOptions)
	}
	return nil
}

// topology is the masters with their slots and replicas, as a node, a sentinel or a master reports it.
type topology []shard

// shard is a master with its slots and its replicas.
type shard struct {
	slots    []cluster.Range
	master   target.Target
	replicas []target.Target
}

// routes is a topology by slot. It is not changed after it is published, since all workers read it.
type routes struct {
	masters  [cluster.SlotCount]int16 // node that serves the slot; none without one
	replicas map[int16][]int16        // of a master
	all      []int16                  // masters with slots, for calls without a key
	members  []int16                  // nodes to connect to
}

// none is no node.
const none = int16(-1)

// maxRouted bounds the addresses of a load, in clusters whose nodes come and go.
const maxRouted = 30_000

// router has the routes of a load and refreshes them when they are stale. Nodes are numbered in the order in which they
// were seen.
type router struct {
	seed     target.Target
	readFrom string
	cluster  bool // nodes redirect, and a replica serves reads after READONLY only
	ask      func(ctx context.Context, rt *router) (topology, error)
	wake     func() // the workers

	current atomic.Pointer[routes]
	stale   chan struct{}

	mu      sync.Mutex // of what follows
	nodes   []target.Target
	numbers map[string]int16
}

// newRouter asks for the first topology. Its errors are those of the nodes that were asked.
func newRouter(ctx context.Context, o *Options, wake func()) (*router, error) {
	rt := &router{
		seed: o.Target, readFrom: o.ReadFrom, cluster: o.Cluster, wake: wake, stale: make(chan struct{}, 1),
		numbers: map[string]int16{},
	}
	switch {
	case o.Cluster:
		rt.ask = askCluster
	case o.Target.Sentinel != "":
		rt.ask = newSentinels(o.Target).ask
	default:
		rt.ask = askReplication
	}
	found, err := rt.ask(ctx, rt)
	if err != nil {
		return nil, err
	}
	rt.current.Store(rt.compile(found))
	return rt, nil
}

// Masters are the servers that hold the data of a load's target: the target itself, the masters of its cluster with
// slots, or the master that its sentinels name. Errors are those of Run.
func Masters(ctx context.Context, o Options) ([]target.Target, error) {
	if o.ReadFrom == "" {
		o.ReadFrom = Master
	}
	if err := o.checkRouting(); err != nil {
		return nil, err
	}
	if !o.routed() {
		return []target.Target{o.Target}, nil
	}
	rt, err := newRouter(ctx, &o, func() {})
	if err != nil {
		return nil, err
	}
	var list []target.Target
	for _, n := range rt.current.Load().all {
		list = append(list, rt.node(n))
	}
	return list, nil
}

// Pauses between two refreshes of the topology: random, 50 to 100 %, and longer each time while nothing has changed,
// since CLUSTER SLOTS is work for a server.
const (
	minRefreshPause = 100 * time.Millisecond
	maxRefreshPause = time.Second
	refreshTimeout  = 2 * time.Second // of one node
	// New replicas are not announced: where they serve reads, the topology is refreshed at least this often.
	replicaRefresh = 10 * time.Second
)

// run refreshes the routes when they are marked as stale.
func (rt *router) run(ctx context.Context) {
	pause := minRefreshPause
	var refresh <-chan time.Time
	for {
		if rt.readFrom != Master {
			refresh = time.After(replicaRefresh/2 + rand.N(replicaRefresh/2))
		}
		select {
		case <-ctx.Done():
			return
		case <-rt.stale:
		case <-refresh:
		}
		found, err := rt.ask(ctx, rt)
		if err == nil && rt.renew(found) {
			pause = minRefreshPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxRefreshPause)
	}
}

// markStale: the routes led to the wrong node, or to none.
func (rt *router) markStale() {
	select {
	case rt.stale <- struct{}{}:
	default: // already marked
	}
}

// renew publishes a topology, and reports whether it has changed.
func (rt *router) renew(found topology) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	next, was := rt.compileLocked(found), rt.current.Load()
	if next.masters == was.masters && slices.Equal(next.members, was.members) && sameReplicas(next.replicas,
		was.replicas) {
		return false
	}
	rt.publish(next)
	return true
}

func sameReplicas(a, b map[int16][]int16) bool {
	if len(a) != len(b) {
		return false
	}
	for master, replicas := range a {
		if !slices.Equal(replicas, b[master]) {
			return false
		}
	}
	return true
}

func (rt *router) publish(next *routes) {
	rt.current.Store(next)
	rt.wake()
}

func (rt *router) compile(found topology) *routes {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.compileLocked(found)
}

func (rt *router) compileLocked(found topology) *routes {
	next := &routes{replicas: map[int16][]int16{}}
	for slot := range next.masters {
		next.masters[slot] = none
	}
	for _, s := range found {
		master := rt.numberLocked(s.master)
		if master == none || len(s.slots) == 0 {
			continue
		}
		for _, r := range s.slots {
			for slot := int(r.From); slot <= int(r.To); slot++ {
				next.masters[slot] = master
			}
		}
		next.all = append(next.all, master)
		next.members = append(next.members, master)
		if rt.readFrom == Master {
			continue
		}
		for _, t := range s.replicas {
			if n := rt.numberLocked(t); n != none {
				next.replicas[master] = append(next.replicas[master], n)
				next.members = append(next.members, n)
			}
		}
		slices.Sort(next.replicas[master])
	}
	slices.Sort(next.all)
	slices.Sort(next.members)
	next.all, next.members = slices.Compact(next.all), slices.Compact(next.members)
	return next
}

// numberLocked gives the number of a node, a new one for a new node.
func (rt *router) numberLocked(t target.Target) int16 {
	if n, ok := rt.numbers[t.Addr()]; ok {
		return n
	}
	if len(rt.nodes) == maxRouted {
		return none
	}
	n := int16(len(rt.nodes))
	rt.nodes, rt.numbers[t.Addr()] = append(rt.nodes, t), n
	return n
}

// node gives the target of a node.
func (rt *router) node(n int16) target.Target {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.nodes[n]
}

// redirected gives the node that a redirect names. After MOVED the routes have the slot there.
func (rt *router) redirected(to cluster.Redirect, answered int16) int16 {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	from := rt.nodes[answered]
	n := rt.numberLocked(from.WithAddr(to.Addr(from.Host)))
	if n == none {
		return none
	}
	was := rt.current.Load()
	known := slices.Contains(was.members, n)
	if known && (to.Ask || was.masters[to.Slot] == n) {
		return n
	}
	next := *was // the slot's number is patched in a copy
	if !known {
		next.members = append(slices.Clone(was.members), n)
		slices.Sort(next.members)
	}
	if !to.Ask {
		next.masters[to.Slot] = n
		if !slices.Contains(was.all, n) {
			next.all = append(slices.Clone(was.all), n)
		}
	}
	rt.publish(&next)
	return n
}
