package survey

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/target"
)

// ErrNotCluster is matched by the error for a target that is in no cluster.
var ErrNotCluster = errors.New("not a cluster")

// ErrNoMap is matched by the error for a target that answers, and does not give its map.
var ErrNoMap = errors.New("no map of the cluster")

// Options say which cluster to survey, and how.
type Options struct {
	Target      target.Target
	Cluster     bool          // the password may be sent to all nodes that a map names (-c)
	Window      time.Duration // how long to count refreshes; 0: not at all
	Timeout     time.Duration // for connecting to a node; 0: DefaultTimeout
	CallTimeout time.Duration // for a reply of a node; 0: DefaultTimeout
	Progress    func(string)  // called with a line about each step; may be nil
}

const (
	// DefaultTimeout is for one node, to connect and for each reply: a node that does not answer must not delay a
	// survey of hundreds of nodes.
	DefaultTimeout = 3 * time.Second

	maxConcurrent = 32 // nodes that are queried at the same time
	// maxLines bounds what is kept of maps, about 500 bytes for each node in each of them. Redis recommends at most
	// 1000 nodes: all of so many are asked.
	maxLines = 1_000_000
)

// mostAsked is how many nodes are asked where a map has so many.
func mostAsked(nodes int) int { return maxLines / max(nodes, 1000) }

// Run queries the target and all nodes that it or others know, then counts map refreshes for the window. A node that
// does not answer is no error, and has the reason in its NodeState; an error says that the target does not answer or is
// in no cluster. When the context ends within the window, the survey has what was seen until then.
func (o Options) Run(ctx context.Context) (*Survey, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultTimeout
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	sv := &surveyor{Options: o, survey: &Survey{Start: time.Now(), target: o.Target}}
	defer sv.close()
	o.Progress("asking " + o.Target.Addr())
	first := sv.add(o.Target)
	if err := sv.connectFirst(ctx, first); err != nil {
		return nil, err
	}
	sv.query(ctx, first)
	if !first.state.HasMap {
		return nil, first.noMap()
	}
	sv.queryNewNodes(ctx)
	sv.queryNewNodes(ctx) // those that the target does not know
	sv.measure(ctx, first)
	sv.countWindow(ctx)
	return sv.survey, nil
}

// surveyor queries the nodes.
type surveyor struct {
	Options
	survey *Survey
	nodes  []*node // in the order of survey.Nodes
}

func (sv *surveyor) add(t target.Target) *node {
	n := &node{
		target: t, timeout: sv.Timeout, callTimeout: sv.CallTimeout,
		state: &NodeState{Addr: t.Addr(), Sent: map[string]int{}},
	}
	sv.nodes = append(sv.nodes, n)
	sv.survey.Nodes = append(sv.survey.Nodes, n.state)
	return n
}

func (sv *surveyor) close() {
	for _, n := range sv.nodes {
		n.close()
	}
}

func (sv *surveyor) connectFirst(ctx context.Context, first *node) error {
	if err := first.open(ctx); err != nil {
		return err
	}
	if enabled, ok := first.state.InfoFields.Numbers["cluster_enabled"]; ok && enabled == 0 {
		name := first.state.Server
		if name == "" {
			name = "it"
		}
		return fmt.Errorf("%w: %s is in no cluster (%s, cluster-enabled no); for a single server: slowpath doctor %s",
			ErrNotCluster, sv.Target.Addr(), name, sv.Target.Addr())
	}
	return nil
}

// queryNewNodes queries the nodes that some map lists and that were not queried yet.
func (sv *surveyor) queryNewNodes(ctx context.Context) {
	added := sv.addNewNodes()
	if len(added) == 0 {
		return
	}
	sv.Progress("asking " + format.Count(len(added), "more node"))
	first := sv.nodes[0]
	forEach(added, func(n *node) {
		n.skipUnsupported(first)
		if err := n.open(ctx); err == nil {
			sv.query(ctx, n)
		}
	})
}

// addNewNodes adds the nodes of all maps that have an address and are not there yet. Those that must not get the
// password are listed with the reason, and not returned.
func (sv *surveyor) addNewNodes() []*node {
	ids, addrs := map[string]bool{}, map[string]bool{}
	for _, l := range sv.survey.Nodes {
		ids[l.ID], addrs[l.Addr] = true, true
	}
	var added []*node
	for _, l := range sv.survey.Nodes {
		for _, n := range l.Map.Nodes {
			addr := n.Addr()
			if addr == "" || ids[n.ID] && n.ID != "" || addrs[addr] || n.HasFlag("handshake") ||
				len(sv.nodes) >= mostAsked(len(l.Map.Nodes)) {
				continue
			}
			ids[n.ID], addrs[addr] = true, true
			peer := sv.add(sv.Target.WithAddr(addr))
			peer.state.ID = n.ID
			if !sv.Cluster && !sv.Target.MayLogIn(sv.nodes[0].session.RemoteAddr(), peer.target) {
				peer.state.Withheld, peer.state.Why = true, "not in a private network with "+sv.Target.Addr()+": the "+
					"password would be sent there"
				continue
			}
			added = append(added, peer)
		}
	}
	return added
}

// forEach runs f for all nodes, maxConcurrent at a time.
func forEach(nodes []*node, f func(*node)) {
	slots := make(chan struct{}, maxConcurrent)
	var wg sync.WaitGroup
	for _, n := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(n)
		})
	}
	wg.Wait()
}

// query asks one node for its view.
func (sv *surveyor) query(ctx context.Context, n *node) {
	n.queryMap(ctx, sv.Target.Host)
	n.queryInfo(ctx)
	n.queryLinks(ctx)
}

// measure measures what the commands cost the target. CLUSTER SHARDS is sent only if clients send it: with a damaged
// map it can crash the server by an assertion.
func (sv *surveyor) measure(ctx context.Context, first *node) {
	sv.Progress("measuring what a refresh costs")
	n := first.state
	for _, c := range cost.Commands {
		calls, _, whole, ok := n.InfoFields.Command(c.Stat())
		if c == cost.Shards && (whole || !ok || calls == 0) {
			continue
		}
		if !n.refused("INFO commandstats") && !n.refused(c.String()) {
			first.measure(ctx, c)
		}
	}
}
