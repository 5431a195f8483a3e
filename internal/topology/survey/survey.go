package survey

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
)

// ErrNotCluster is matched by the error for a target that is in no cluster.
var ErrNotCluster = errors.New("not a cluster")

// ErrNoMap is matched by the error for a target that answers, and does not give its map.
var ErrNoMap = errors.New("no map of the cluster")

// Options say what to look at.
type Options struct {
	Target   target.Target
	Window   time.Duration // how long to count refreshes; 0: not at all
	Timeout  time.Duration // of a connection, and of a command; 0: DefaultTimeout
	Progress func(string)  // told now and then what is done; may be nil
}

const (
	// DefaultTimeout is patience with one node; a node that is dead without a word must not hold up the look at
	// hundreds.
	DefaultTimeout = 3 * time.Second

	atOnce   = 32 // nodes that are asked side by side
	maxPeers = 2000
)

// Look asks the target and all nodes that it or others know, then counts refreshes for the window. A node that does not
// answer is told in its Look and is no error; an error says that the target does not, or that it is in no cluster. When
// the context ends in the window, the survey has what was seen until then.
func (o Options) Look(ctx context.Context) (*Survey, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	sv := &surveyor{Options: o, survey: &Survey{Start: time.Now()}}
	defer sv.close()
	o.Progress("asking " + o.Target.Addr())
	first := sv.add(o.Target)
	if err := sv.greet(ctx, first); err != nil {
		return nil, err
	}
	sv.ask(ctx, first)
	if !first.look.HasMap {
		return nil, first.noMap()
	}
	sv.round(ctx)
	sv.round(ctx) // those whom the target does not know
	sv.measure(ctx, first)
	sv.watch(ctx)
	return sv.survey, nil
}

// surveyor asks.
type surveyor struct {
	Options
	survey *Survey
	nodes  []*node // as survey.Looks
}

func (sv *surveyor) add(t target.Target) *node {
	n := &node{target: t, timeout: sv.Timeout, look: &Look{Addr: t.Addr(), Sent: map[string]int{}}}
	sv.nodes = append(sv.nodes, n)
	sv.survey.Looks = append(sv.survey.Looks, n.look)
	return n
}

func (sv *surveyor) close() {
	for _, n := range sv.nodes {
		n.close()
	}
}

func (sv *surveyor) greet(ctx context.Context, first *node) error {
	if err := first.open(ctx); err != nil {
		return err
	}
	if enabled, told := first.look.Fields.Numbers["cluster_enabled"]; told && enabled == 0 {
		name := first.look.Server
		if name == "" {
			name = "it"
		}
		return fmt.Errorf("%w: %s is not in one (%s, cluster-enabled no); for a single server: slowpath doctor %s",
			ErrNotCluster, sv.Target.Addr(), name, sv.Target.Addr())
	}
	return nil
}

// round asks the nodes that are known to somebody and were not asked yet.
func (sv *surveyor) round(ctx context.Context) {
	fresh := sv.strangers()
	if len(fresh) == 0 {
		return
	}
	sv.Progress(fmt.Sprintf("asking %d more nodes", len(fresh)))
	first := sv.nodes[0]
	each(fresh, func(n *node) {
		n.learn(first)
		if err := n.open(ctx); err == nil {
			sv.ask(ctx, n)
		}
	})
}

// strangers adds the nodes of all maps that have an address and were not asked.
func (sv *surveyor) strangers() []*node {
	ids, addrs := map[string]bool{}, map[string]bool{}
	for _, l := range sv.survey.Looks {
		ids[l.ID], addrs[l.Addr] = true, true
	}
	var fresh []*node
	for _, l := range sv.survey.Looks {
		for _, n := range l.Map.Nodes {
			addr := n.Addr()
			if addr == "" || ids[n.ID] && n.ID != "" || addrs[addr] || n.HasFlag("handshake") ||
				len(sv.nodes) >= maxPeers {
				continue
			}
			ids[n.ID], addrs[addr] = true, true
			peer := sv.add(sv.Target.WithAddr(addr))
			peer.look.ID = n.ID
			fresh = append(fresh, peer)
		}
	}
	return fresh
}

// each runs f for all nodes, some at once.
func each(nodes []*node, f func(*node)) {
	gate := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, n := range nodes {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			f(n)
		})
	}
	wg.Wait()
}

// ask has one node tell its view.
func (sv *surveyor) ask(ctx context.Context, n *node) {
	n.askMap(ctx, sv.Target.Host)
	n.askInfo(ctx)
	n.askLinks(ctx)
}

// measure has the target tell what the commands cost it. SHARDS is asked only of a server of whom clients ask it: with
// a damaged map it can end the server by an assertion.
func (sv *surveyor) measure(ctx context.Context, first *node) {
	sv.Progress("measuring what a refresh costs")
	n := first.look
	for _, c := range cost.Commands {
		calls, _, whole, ok := n.Fields.Command(c.Stat())
		if c == cost.Shards && (whole || !ok || calls == 0) {
			continue
		}
		if !n.refused("INFO commandstats") && !n.refused(c.String()) {
			first.measure(ctx, c)
		}
	}
}

// myself is the node of a map that answered.
func myself(m cluster.Map) (cluster.Node, bool) {
	for _, n := range m.Nodes {
		if n.HasFlag("myself") {
			return n, true
		}
	}
	return cluster.Node{}, false
}
