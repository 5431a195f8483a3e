package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// handshakeExtraRTTs opens a connection for every two calls. The handshake of go-redis (HELLO with AUTH, SELECT and
// CLIENT SETNAME, CLIENT SETINFO, …) takes several round trips of 4 ms.
var handshakeExtraRTTs = Scenario{
	ID:    "handshake-extra-rtts",
	Cause: "handshake-extra-rtts",
	Title: "a job that makes a new go-redis client for every two calls, 4 ms from its server",
	Fixes: []string{"one-client"},
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		l.StepsOf(string(clients.GoRedis9))
		callsPerClient := 2
		if l.Fixed("one-client") {
			callsPerClient = 0
		}
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Name: "job", DB: 2, Commands: smallReads(),
			Keys:    Documents,
			Workers: 4, Rate: 40, CallsPerClient: callsPerClient,
		}})
	},
}

// clientPerCallFar makes a new client for every few calls, at some distance from the server.
var clientPerCallFar = Fault{
	Name:   "handshake-extra-rtts",
	Cause:  "handshake-extra-rtts",
	Also:   []string{"short-lived-connections"},
	Needs:  Needs{Topologies: []Topology{Proxied}, Callers: []clients.Name{clients.GoRedis9}},
	Draw:   func(r *rand.Rand) Strength { return Strength{"calls_per_client": float64(1 + r.IntN(4))} },
	Base:   func(o *clients.Options, _ Strength) { o.DB = 2 },
	Caller: clientPerCall.Caller,
}
