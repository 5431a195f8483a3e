package probing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// hop is one server that probe calls.
type hop struct {
	target  target.Target
	hashTag string // of a cluster's node: keys with it belong to the node
	noKeys  bool   // a node of a cluster that serves no key
	server  string // "redis 7.0.15"
}

// greetHops greets every target before the probing begins: a wrong address is an error, not a slow call. For a cluster
// the nodes of a target's become hops too.
func greetHops(ctx context.Context, a *cli.Program, targets []target.Target, cluster bool, timeout time.Duration,
) ([]hop, error) {
	var all []hop
	seen := map[string]bool{}
	for _, t := range targets {
		if seen[t.Addr()] {
			continue
		}
		a.Progress("connecting to %s", t.Addr())
		g, err := source.Greet(ctx, t, timeout)
		if err != nil {
			a.ProgressDone()
			return nil, err
		}
		all = append(all, hopOf(t, g))
		seen[t.Addr()], seen[g.Remote] = true, true
		var peers []target.Target
		for _, addr := range g.Identity.Nodes {
			if cluster && !seen[addr] {
				peers = append(peers, t.WithAddr(addr))
				seen[addr] = true
			}
		}
		all = append(all, greetPeers(ctx, a, peers, timeout)...)
	}
	a.ProgressDone()
	return all, nil
}

// greetPeers greets the other nodes of a cluster, all at once, and leaves out those that cannot be reached.
func greetPeers(ctx context.Context, a *cli.Program, targets []target.Target, timeout time.Duration) []hop {
	greetings := make([]source.Greeting, len(targets))
	errs := make([]error, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() { greetings[i], errs[i] = source.Greet(ctx, t, timeout) })
	}
	wg.Wait()
	var hops []hop
	for i, t := range targets {
		if errs[i] != nil {
			a.ProgressDone()
			a.Say(fmt.Sprintf("left out: %s", layout.OneLine(errs[i].Error())))
			continue
		}
		hops = append(hops, hopOf(t, greetings[i]))
	}
	return hops
}

func hopOf(t target.Target, g source.Greeting) hop {
	return hop{target: t, hashTag: g.HashTag, noKeys: g.NoKeys(), server: g.Identity.Server}
}
