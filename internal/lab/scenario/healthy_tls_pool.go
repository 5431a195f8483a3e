package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// healthyTLSPool has a pool that closes a connection now and then, since it was idle for long, and others that keep
// theirs. Under TLS an alert goes before each close: it is no call that nobody answers.
var healthyTLSPool = Scenario{
	ID:    "healthy-tls-pool",
	Cause: HealthyCause,
	Title: "pools under TLS, of which one closes what was idle for a second",
	Args:  []string{"--insecure"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{TLS: true})
		if err != nil {
			return Scene{}, err
		}
		for _, c := range []struct {
			program clients.Name
			options clients.Options
		}{
			{clients.GoRedis8, clients.Options{Workers: 6, Rate: 60, Random: true, IdleLimit: time.Second}},
			{clients.RedisPy, clients.Options{Workers: 4, Rate: 100}},
		} {
			o := c.options
			o.Addresses, o.TLS, o.Commands, o.Keys = []string{s.Addr}, true, mixedReads(), Documents
			if err := l.Client(ctx, ClientSpec{Program: c.program, Options: o}); err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: "rediss://" + s.Addr}, nil
	},
}
