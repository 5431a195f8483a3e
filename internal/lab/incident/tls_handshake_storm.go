package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// tlsHandshakeStorm opens many TLS connections at once: each costs the server's main thread as much as hundreds of
// commands, and all other connections wait for it.
var tlsHandshakeStorm = Incident{
	ID:    "tls-handshake-storm",
	Cause: "tls-handshake-storm",
	Title: "60 go-redis callers that open TLS connections all the time, and other callers that keep theirs",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true, RSA: 2048, CPUs: []int{0}})
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

// tlsHandshakeStormRedigo keeps no idle connections, which is the default of redigo: each call needs a handshake.
var tlsHandshakeStormRedigo = Incident{
	ID:    "tls-handshake-storm-redigo",
	Cause: "tls-handshake-storm",
	Title: "a redigo pool without MaxIdle for 30 callers, and a server with a certificate of RSA 4096",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true, RSA: 4096, CPUs: []int{0}})
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
