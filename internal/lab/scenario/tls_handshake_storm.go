package scenario

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// tlsHandshakeStorm opens many TLS connections at once: each costs the server's main thread as much as hundreds of
// commands, and all other connections wait for it.
var tlsHandshakeStorm = Scenario{
	ID:    "tls-handshake-storm",
	Cause: "tls-handshake-storm",
	Title: "60 go-redis callers that open TLS connections all the time, and other callers that keep theirs",
	Fixes: []string{"keep-connections"},
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true, RSA: 2048, CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, ClientSpec{Program: clients.RedisPy, CPU: otherCPU(), Options: clients.Options{
			Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: Documents, Workers: 4,
			Rate: 200,
		}}); err != nil {
			return Scene{}, err
		}
		o := clients.Options{
			Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: Documents, Workers: 60,
			Rate: 3000, CallsPerClient: 2, DialTimeout: 10 * time.Second,
		}
		if l.Fixed("keep-connections") {
			keepConnections(&o)
		}
		return Scene{Target: "rediss://" + s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.GoRedis9, CPU: otherCPU(), Options: o,
		})
	},
}

// tlsHandshakeStormRedigo keeps no idle connections, which is the default of redigo: each call needs a handshake.
var tlsHandshakeStormRedigo = Scenario{
	ID:    "tls-handshake-storm-redigo",
	Cause: "tls-handshake-storm",
	Title: "a redigo pool without MaxIdle for 30 callers, and a server with a certificate of RSA 4096",
	Fixes: []string{"keep-connections"},
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true, RSA: 4096, CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		o := clients.Options{
			Addresses: []string{s.Addr}, TLS: true, Commands: mixedReads(), Keys: Documents, Workers: 30,
			Rate: 1000,
		}
		if l.Fixed("keep-connections") {
			keepConnections(&o)
		}
		return Scene{Target: "rediss://" + s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.Redigo, CPU: otherCPU(), Options: o,
		})
	},
}

// handshakes opens TLS connections on behalf of other callers.
var handshakes = Fault{
	Name:  "tls-handshake-storm",
	Cause: "tls-handshake-storm",
	Also:  []string{"short-lived-connections"}, // under TLS
	Needs: Needs{Topologies: []Topology{Encrypted}, OneCPU: true},
	Calls: true,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"callers": between(r, 2, 60), "gap_ms": between(r, 20, 200)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		anyCertificate := &tls.Config{InsecureSkipVerify: true} // it is the lab's own
		l.startCallers(ctx, s.int("callers"), s.millis("gap_ms"), func(ctx context.Context) error {
			return pingOnce(ctx, st.Server.Addr, anyCertificate)
		})
		return nil
	},
}
