package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// reconnectHerd restarts a server with 600 connections of three instances of an application. All reconnect at once,
// each with a handshake, and the calls wait for the new connections.
var reconnectHerd = Scenario{
	ID:       "reconnect-herd",
	Cause:    "reconnect-herd",
	Title:    "a restart of the server every three seconds, under 600 connections of go-redis",
	Unproven: "the client program of the lab has no option for jitter or for fewer dials at a time",
	Args:     []string{"-a", labPassword},
	Watch:    10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Password: labPassword})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 3); err != nil {
			return Scene{}, err
		}
		for range 3 { // instances of the application
			if err := l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
				Addresses: []string{s.Addr}, Password: labPassword, Name: "orders", Commands: smallReads(),
				Keys:    Documents,
				Workers: 200, PoolSize: 200, MinIdle: 200, Rate: 1000, Random: true,
			}}); err != nil {
				return Scene{}, err
			}
		}
		l.everyAfter(ctx, 3*time.Second, func(ctx context.Context) error {
			if err := s.Kill(ctx); err != nil {
				return err
			}
			return s.Restart(ctx)
		})
		return Scene{Target: s.Addr}, nil
	},
}

// reconnectHerdKilled closes the connections of another library, and the server keeps running.
var reconnectHerdKilled = Scenario{
	ID:    "reconnect-herd-killed",
	Cause: "reconnect-herd",
	Title: "CLIENT KILL of all 300 connections of Jedis every three seconds, 8 ms from its server",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 8*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		for range 2 {
			if err := l.Client(ctx, ClientSpec{Program: clients.Jedis, Options: clients.Options{
				Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(),
				Keys:    Documents,
				Workers: 150, PoolSize: 150, MinIdle: 150, Rate: 4000, Random: true,
			}}); err != nil {
				return Scene{}, err
			}
		}
		l.everyAfter(ctx, 3*time.Second, func(ctx context.Context) error {
			_, err := s.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			return err
		})
		return Scene{Target: addr}, nil
	},
}
