package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// handshakeExtraRTTs opens a connection for every two calls. The handshake of go-redis (HELLO with AUTH, SELECT and
// CLIENT SETNAME, CLIENT SETINFO, …) takes several round trips of 5 ms.
var handshakeExtraRTTs = Incident{
	ID:    "handshake-extra-rtts",
	Cause: "handshake-extra-rtts",
	Title: "a job that makes a new go-redis client for every two calls, 5 ms from its server",
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 5*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: addr}, l.Client(ctx, clientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Name: "job", DB: 2, Commands: smallReads(),
			Keys:    documents,
			Workers: 4, Rate: 40, CallsPerClient: 2,
		}})
	},
}
