package source

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/target"
)

// node is a server that will be watched.
type node struct {
	target     target.Target
	address    string
	remote     string // address that its name resolved to, empty where there was no connection
	identity   server.Identity
	process    *host.Process // nil: not on this host, or --no-host
	proxy      host.Process  // of this host, which answers here and passes calls on to a server; PID 0: none
	hostWhy    string        // why the process is not known
	hostEnable string        // and what would help
	hashTag    string        // Greeting.HashTag
	observers  []server.Client
	unnamed    bool // it accepts no name of a connection: a proxy that sends the calls of all over its own connections
}

func (n node) kind() string {
	switch {
	case n.proxy.PID != 0:
		return "proxy"
	case n.identity.ClusterEnabled:
		return "cluster"
	case n.identity.Server == "":
		return "unknown"
	default:
		return "standalone"
	}
}

// behindProxy reports whether its process is the server behind the proxy that answers here.
func (n node) behindProxy() bool {
	return n.proxy.PID != 0 && n.process != nil && n.process.PID != n.proxy.PID
}

// mergesInfo reports whether a proxy of this host answers INFO with the INFO of all its servers merged: that costs all
// servers time, and says nothing of the proxy.
func (n node) mergesInfo() bool { return n.proxy.PID != 0 && n.identity.Merged() }

// watchProxies has a proxy watched itself where its server is another of the nodes.
func watchProxies(nodes []node) {
	for i := range nodes {
		n := &nodes[i]
		if n.behindProxy() && slices.ContainsFunc(nodes, func(o node) bool {
			return o.address != n.address && !o.behindProxy() && o.process != nil && o.process.PID == n.process.PID
		}) {
			n.process = &n.proxy
		}
	}
}

// connectAll connects to every target once and, from a node of a cluster, finds the others. A target that cannot be
// reached is an error, unless o.Unreachable takes it and others can; another node of its cluster that cannot be reached
// is a blind spot. Masters that the other nodes flag as failed are tried as well: the process of one may hang on this
// host, with callers that still wait for it.
func connectAll(ctx context.Context, o Options, sink recording.Sink) ([]node, error) {
	var nodes []node
	var without error
	seen := map[string]bool{}
	for _, t := range o.Targets {
		if seen[t.Addr()] {
			continue
		}
		o.Progress("connecting to " + t.Addr())
		n, err := connect(ctx, o, sink, t)
		switch {
		case err != nil && (o.Unreachable == nil || ctx.Err() != nil):
			return nil, err
		case err != nil:
			o.Unreachable(t, err)
			blindSpot(sink, o.Clock, t.Addr(), recording.BlindSpot{
				What: "the server " + t.Addr(), Why: err.Error(), Enable: "have it answer; it is tried again",
			})
			without = err
			continue
		}
		nodes = append(nodes, n)
		seen[t.Addr()], seen[n.remote] = true, true
		var peers []target.Target
		for _, addr := range append(slices.Clone(n.identity.Nodes), n.identity.Failed...) {
			switch {
			case seen[addr]:
			case !o.Cluster && !t.MayLogIn(n.remote, t.WithAddr(addr)):
				reportUnwatched(o, sink, addr, t.Addr()+" names it, and it is not in a private network with it: the "+
					"password would be sent there", "-c, if all nodes that "+t.Addr()+" names may have the password")
			case len(nodes)+len(peers) >= maxNodes:
				reportUnwatched(o, sink, addr, fmt.Sprintf("only %d nodes are watched at a time", maxNodes),
					"slowpath doctor "+format.Shell(addr))
			default:
				peers = append(peers, t.WithAddr(addr))
			}
			seen[addr] = true
		}
		nodes = append(nodes, connectPeers(ctx, o, sink, peers)...)
	}
	if len(nodes) == 0 {
		return nil, without
	}
	watchProxies(nodes)
	return nodes, nil
}

// connectPeers connects to the other nodes of a cluster, all at once: where this host has no route to them, each takes
// the whole timeout.
func connectPeers(ctx context.Context, o Options, sink recording.Sink, peers []target.Target) []node {
	if len(peers) > 0 {
		o.Progress(fmt.Sprintf("connecting to %d more nodes of the cluster", len(peers)))
	}
	connected := make([]node, len(peers))
	errs := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, t := range peers {
		wg.Go(func() { connected[i], errs[i] = connect(ctx, o, sink, t) })
	}
	wg.Wait()
	var nodes []node
	for i, n := range connected {
		if errs[i] != nil {
			reportUnwatched(o, sink, peers[i].Addr(), errs[i].Error(), "run slowpath where the node can be reached")
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func reportUnwatched(o Options, sink recording.Sink, addr, why, enable string) {
	blindSpot(sink, o.Clock, addr, recording.BlindSpot{What: "cluster node " + addr, Why: why, Enable: enable})
}
