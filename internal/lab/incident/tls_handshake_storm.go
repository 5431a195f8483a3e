package incident

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// tlsHandshakeStorm has many callers open TLS connections at once: each costs the server's main thread as much as some
// hundred commands, and all who are connected wait for it.
var tlsHandshakeStorm = Incident{
	ID:    "tls-handshake-storm",
	Cause: "tls-handshake-storm",
	Title: "go-redis clients that make 60 TLS connections at once, again and again, beside callers that keep theirs",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.secureServer(ctx, 2048)
		if err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, clientSpec{Program: clients.RedisPy, CPU: otherCPU(), Options: clients.Options{
			Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: documents, Workers: 4,
			Rate: 200,
		}}); err != nil {
			return Scene{}, err
		}
		return Scene{Target: "rediss://" + s.Addr}, l.Client(ctx, clientSpec{
			Program: clients.GoRedis9, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: documents, Workers: 60,
				CallsPerClient: 2, DialTimeout: 10 * time.Second,
			},
		})
	},
}

// tlsHandshakeStormRedigo keeps no connection, as redigo does unless it is told to: each call is a handshake.
var tlsHandshakeStormRedigo = Incident{
	ID:    "tls-handshake-storm-redigo",
	Cause: "tls-handshake-storm",
	Title: "a redigo pool without MaxIdle, for 30 callers, at a server whose certificate is of RSA 4096",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.secureServer(ctx, 4096)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: "rediss://" + s.Addr}, l.Client(ctx, clientSpec{
			Program: clients.Redigo, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: documents, Workers: 30,
			},
		})
	},
}

// secureServer speaks TLS only, on the first CPU, with a certificate of RSA, as most are.
func (l *Lab) secureServer(ctx context.Context, bits int) (*fleet.Instance, error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, err
	}
	if !bin.TLS {
		return nil, fmt.Errorf("%w: %s is built without TLS", ErrCannot, bin.Name)
	}
	return l.Start(ctx, fleet.Spec{TLS: true, RSA: bits, CPUs: []int{0}})
}
