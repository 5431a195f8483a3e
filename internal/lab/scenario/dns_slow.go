package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// dnsSlow resolves the name of its server for each new connection, with a slow name server.
var dnsSlow = slowNames("", "a redigo pool with MaxIdle 1 for 8 callers, and DNS that takes 60 ms",
	clients.Redigo, 60*time.Millisecond, 0, clients.Options{Workers: 8, Rate: 80, Random: true, MaxIdle: 1})

// dnsSlowJob has no pool, and its handshake takes time besides the DNS query.
var dnsSlowJob = slowNames("-job", "a job with a new go-redis client for every two calls, and DNS that takes 30 ms",
	clients.GoRedis9, 30*time.Millisecond, 0, clients.Options{Workers: 4, Rate: 40, CallsPerClient: 2})

// dnsSlowLost is how DNS is slow in many Kubernetes clusters: some queries are lost, and the resolver retries after 5
// s.
var dnsSlowLost = slowNames("-lost", "a job with a new go-redis client for every two calls, and DNS that loses every "+
	"sixth query",
	clients.GoRedis9, 0, 6, clients.Options{Workers: 12, Rate: 40, CallsPerClient: 2, DialTimeout: 20 * time.Second})

// keepConnections lets a client keep them: one client for all calls, with as many idle connections as callers.
func keepConnections(o *clients.Options) { o.CallsPerClient, o.MaxIdle = 0, o.Workers }

func slowNames(suffix, title string, program clients.Name, delay time.Duration, loseEvery int,
	o clients.Options,
) Scenario {
	return Scenario{
		ID:    "dns-slow" + suffix,
		Cause: "dns-slow",
		Title: title,
		Watch: 12 * time.Second,
		Fixes: []string{"keep-connections"},
		Make: func(ctx context.Context, l *Lab) (Scene, error) {
			s, err := l.Start(ctx, fleet.Spec{})
			if err != nil {
				return Scene{}, err
			}
			prefix, err := (&fault.NameServer{Delay: delay, LoseEvery: loseEvery}).Start(l)
			if err != nil {
				return Scene{}, err
			}
			if l.Fixed("keep-connections") {
				keepConnections(&o)
			}
			o.Addresses, o.Commands, o.Keys = []string{fault.ByName(s.Addr)}, mixedReads(), Documents
			return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{Program: program, Prefix: prefix, Options: o})
		},
	}
}

// slowNameServer answers late.
var slowNameServer = Fault{
	Name:  "dns-slow",
	Cause: "dns-slow",
	Needs: Needs{Topologies: []Topology{Standalone}, Names: true, With: clientPerCall.Name},
	Draw:  func(r *rand.Rand) Strength { return Strength{"delay_ms": between(r, 1, 100)} },
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { st.Names.SetLate(0); return nil })
		st.Names.SetLate(s.millis("delay_ms"))
		return nil
	},
}
