package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
)

// hops are nodes one behind the other, the first that callers call first.
type hops []*fleet.Instance

// hops starts HAProxy in front of twemproxy in front of so many servers.
func (l *Lab) hops(ctx context.Context, count int) (hops, error) {
	var all []*fleet.Instance
	for range count {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	inner, err := l.proxy(ctx, Twemproxy, all...)
	if err != nil {
		return nil, err
	}
	outer, err := l.proxy(ctx, HAProxy, inner)
	if err != nil {
		return nil, err
	}
	return append(hops{outer, inner}, all...), nil
}

// scene has all hops watched.
func (h hops) scene() Scene {
	s := Scene{Target: h[0].Addr}
	for _, n := range h[1:] {
		s.Args = append(s.Args, n.Addr)
	}
	return s
}
