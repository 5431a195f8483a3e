package scenario

import (
	"context"
	"crypto/tls"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// shortLivedConnectionsTLS pays a TLS handshake for every command.
var shortLivedConnectionsTLS = Scenario{
	ID:    "short-lived-connections-tls",
	Cause: "short-lived-connections",
	Title: "150 calls per second, each on a TLS connection of its own",
	Fixes: []string{"one-client"},
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true})
		if err != nil {
			return Scene{}, err
		}
		if l.Fixed("one-client") {
			l.Load(ctx, traffic.Spec{Addr: s.Addr, TLS: true, Conns: 6, Rate: 150, Command: traffic.Always("PING")})
			return Scene{Target: "rediss://" + s.Addr}, nil
		}
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the lab's own certificate, on loopback
		for range 6 {
			l.Every(ctx, 40*time.Millisecond, func(ctx context.Context) error { return pingOnce(ctx, s.Addr, config) })
		}
		return Scene{Target: "rediss://" + s.Addr}, nil
	},
}
