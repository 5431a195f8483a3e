package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// reconnectHerd restarts a server under 600 connections of three instances of an application. Each comes back at once,
// with a handshake of its own, and the calls of all wait for the new connections.
var reconnectHerd = Incident{
	ID:    "reconnect-herd",
	Cause: "reconnect-herd",
	Title: "a server that is restarted under 600 connections of go-redis, every three seconds",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.herdServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		for range 3 { // instances of the application
			if err := l.Client(ctx, clientSpec{Program: clients.GoRedis9, Options: clients.Options{
				Addresses: []string{s.Addr}, Password: labPassword, Name: "orders", Commands: smallReads(),
				Keys:    documents,
				Workers: 200, PoolSize: 200, MinIdle: 200, Rate: 1000, Random: true,
			}}); err != nil {
				return Scene{}, err
			}
		}
		l.later(ctx, 3*time.Second, func(ctx context.Context) error {
			if err := s.Kill(ctx); err != nil {
				return err
			}
			return s.Restart(ctx)
		})
		return Scene{Target: s.Addr}, nil
	},
}

// reconnectHerdKilled ends the connections of another library, and the server goes on.
var reconnectHerdKilled = Incident{
	ID:    "reconnect-herd-killed",
	Cause: "reconnect-herd",
	Title: "CLIENT KILL of all connections of Jedis, every three seconds, 8 ms from its server",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 8)
		if err != nil {
			return Scene{}, err
		}
		for range 2 {
			if err := l.Client(ctx, clientSpec{Program: clients.Jedis, Options: clients.Options{
				Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(),
				Keys:    documents,
				Workers: 150, PoolSize: 150, MinIdle: 150, Rate: 4000, Random: true,
			}}); err != nil {
				return Scene{}, err
			}
		}
		l.later(ctx, 3*time.Second, func(ctx context.Context) error {
			_, err := s.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			return err
		})
		return Scene{Target: addr}, nil
	},
}

// herdServer is one whose clients have to log in.
func (l *Lab) herdServer(ctx context.Context) (*fleet.Instance, error) {
	s, err := l.Start(ctx, fleet.Spec{Password: labPassword})
	if err != nil {
		return nil, err
	}
	return s, fillDocuments(ctx, s, documents, 3)
}

// later repeats an action until the incident ends, the first time after the gap.
func (l *Lab) later(ctx context.Context, gap time.Duration, action func(context.Context) error) {
	first := true
	l.Every(ctx, gap, func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		return action(ctx)
	})
}
