package incident

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"slowpath/internal/lab/fleet"
)

// shortLivedConnectionsTLS pays a TLS handshake for every command.
var shortLivedConnectionsTLS = Incident{
	ID:    "short-lived-connections-tls",
	Cause: "short-lived-connections",
	Title: "150 calls per second, each with a TLS connection of its own",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		bin, err := l.Cache.Get(ctx, l.Server, l.Log)
		if err != nil {
			return Scene{}, err
		}
		if !bin.TLS {
			return Scene{}, fmt.Errorf("%w: %s is built without TLS", ErrCannot, bin.Name)
		}
		s, err := l.Start(ctx, fleet.Spec{TLS: true})
		if err != nil {
			return Scene{}, err
		}
		// A lab's own certificate on loopback; who would be deceived?
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec
		for range 6 {
			l.Every(ctx, 40*time.Millisecond, func(ctx context.Context) error { return pingOnce(ctx, s.Addr, config) })
		}
		return Scene{Target: "rediss://" + s.Addr}, nil
	},
}
