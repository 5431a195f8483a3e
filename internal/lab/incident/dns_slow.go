package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// dnsSlow looks its server up for each new connection, at a name server that takes its time.
var dnsSlow = namesIncident("", "a redigo pool with MaxIdle 1 for 8 callers, that looks its server up at a name "+
	"server of 60 ms",
	clients.Redigo, 60*time.Millisecond, 0, clients.Options{Workers: 8, Rate: 80, Random: true, MaxIdle: 1})

// dnsSlowJob has no pool, and more to do for a connection than to look it up.
var dnsSlowJob = namesIncident("-job", "a job that makes itself a go-redis client for every two calls, with names "+
	"that take 30 ms",
	clients.GoRedis9, 30*time.Millisecond, 0, clients.Options{Workers: 4, Rate: 40, CallsPerClient: 2})

// dnsSlowLost is the way that name servers are slow in most clusters of Kubernetes: some questions get lost, and the
// resolver asks again after 5 s.
var dnsSlowLost = namesIncident("-lost", "the same, where the name server is quick and each sixth question gets lost",
	clients.GoRedis9, 0, 6, clients.Options{Workers: 12, Rate: 40, CallsPerClient: 2, DialTimeout: 20 * time.Second})

func namesIncident(suffix, title string, program clients.Name, delay time.Duration, lose int,
	o clients.Options,
) Incident {
	return Incident{
		ID:    "dns-slow" + suffix,
		Cause: "dns-slow",
		Title: title,
		Watch: 12 * time.Second,
		Make: func(ctx context.Context, l *Lab) (Scene, error) {
			s, err := l.Start(ctx, fleet.Spec{})
			if err != nil {
				return Scene{}, err
			}
			lead, err := l.slowNames(delay, lose)
			if err != nil {
				return Scene{}, err
			}
			o.Addresses, o.Commands, o.Keys = []string{byName(s.Addr)}, mixedReads(), documents
			return Scene{Target: s.Addr}, l.Client(ctx, clientSpec{Program: program, Lead: lead, Options: o})
		},
	}
}
