package scenario

import (
	"context"
	"fmt"
	"runtime"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// clientCPUSaturated gives a client with 30 callers and eight threads one CPU. Each caller decodes its reply at once.
// The server has the other CPU.
var clientCPUSaturated = Scenario{
	ID:    "client-cpu-saturated",
	Cause: "client-cpu-saturated",
	Title: "a go-redis client with 30 callers that decode their replies, on one CPU",
	Fixes: []string{"more-cpus", "less-work-per-reply"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if runtime.NumCPU() < 2 {
			return Scene{}, fmt.Errorf("%w: it needs a CPU for the client and one for the server", fault.ErrCannot)
		}
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		items, cpus := 20, otherCPU()
		if l.Fixed("less-work-per-reply") {
			items = 2
		}
		if l.Fixed("more-cpus") {
			cpus = ""
		}
		if err := fillDocuments(ctx, s, Documents, items); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.GoRedis9, CPU: cpus,
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: 30, PoolSize: 30,
				Rate: 4000, DecodesPerCall: 4, Procs: 8,
			},
		})
	},
}
