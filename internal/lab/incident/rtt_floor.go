package incident

import (
	"context"
	"fmt"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// rttFloor puts 8 ms between the callers and an idle server, as a region far away, or a proxy that holds on to what it gets.
var rttFloor = Incident{
	ID:    "rtt-floor",
	Cause: "rtt-floor",
	Title: "a path that adds 8 ms to every reply",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "far", "127.0.0.1:0", s.Addr)
		if err := proxy.Start(); err != nil {
			return Scene{}, fmt.Errorf("starting the delay proxy: %w", err)
		}
		l.Defer(func(context.Context) error { proxy.Stop(); return nil })
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(`{"name":"far","type":"latency","stream":"downstream","attributes":{"latency":8}}`)); err != nil {
			return Scene{}, fmt.Errorf("setting the delay: %w", err)
		}
		l.Load(ctx, traffic.Spec{Addr: proxy.Listen, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: proxy.Listen}, nil
	},
}
