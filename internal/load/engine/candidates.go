//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"slowpath/internal/wire/target"
)

// candidates are the nodes to ask for the topology: the current ones in random order, the seed, then all others that
// were seen.
func (rt *router) candidates() []target.Target {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var list []target.Target
	add := func(t target.Target) {
		if !slices.ContainsFunc(list, func(u target.Target) bool { return u.Addr() == t.Addr() }) {
			list = append(list, t)
		}
	}
	if now := rt.current.Load(); now != nil {
		for _, i := range rand.Perm(len(now.members)) {
			add(rt.nodes[now.members[i]])
		}
	}
	add(rt.seed)
	for _, i := range rand.Perm(len(rt.nodes)) {
		add(rt.nodes[i])
	}
	return list
}

// firstOf asks one after the other until one answers.
func firstOf(ctx context.Context, list []target.Target, ask func(context.Context, target.Target) (topology,
	error),
) (topology, error) {
	var errs []error
	for _, t := range list {
		ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
		found, err := ask(ctx, t)
		cancel()
		if err == nil {
			return found, nil
		}
		errs = append(errs, err)
		if ctx.Err() == context.Canceled {
			break
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, fmt.Errorf("asking for the topology: %w", errors.Join(errs...))
}
