package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
)

// hops are nodes one behind the other, the first that callers call first.
type hops []*fleet.Instance

// hops starts HAProxy in front of a proxy in front of a server. The proxy is Twemproxy or Envoy.
func (l *Lab) hops(ctx context.Context, proxy string) (hops, error) {
	s, err := l.Start(ctx, fleet.Spec{})
	if err != nil {
		return nil, err
	}
	inner, err := l.proxy(ctx, proxy, s)
	if err != nil {
		return nil, err
	}
	outer, err := l.proxy(ctx, HAProxy, inner)
	if err != nil {
		return nil, err
	}
	return hops{outer, inner, s}, nil
}

// scene has all hops watched.
func (h hops) scene() Scene {
	s := Scene{Target: h[0].Addr}
	for _, n := range h[1:] {
		s.Args = append(s.Args, n.Addr)
	}
	return s
}
