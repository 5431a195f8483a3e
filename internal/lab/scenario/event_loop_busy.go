package scenario

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// eventLoopBusy has 300 clients told of all keys that change (CLIENT TRACKING ON BCAST), and a job that writes
// thousands of them at once: the server writes the names of the keys to each client, between commands.
var eventLoopBusy = Scenario{
	ID:    "event-loop-busy",
	Cause: "event-loop-busy",
	Title: "300 clients with CLIENT TRACKING ON BCAST, and a job that writes 4 000 keys at once, every 0.7 s",
	Fixes: []string{"fewer-told"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if l.before(6, 0) {
			return Scene{}, fmt.Errorf("%w: CLIENT TRACKING needs Redis 6.0", fault.ErrCannot)
		}
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		track := "HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n"
		if l.Fixed("fewer-told") {
			track = "HELLO 3\r\nCLIENT TRACKING ON\r\n"
		}
		for range 300 {
			if _, err := l.discard(ctx, s.Addr, track); err != nil {
				return Scene{}, err
			}
		}
		get := traffic.Always("GET", "catalogue:item:00000001")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: get})
		job, err := l.discard(ctx, s.Addr, "PING\r\n")
		if err != nil {
			return Scene{}, err
		}
		sets := catalogueSets(4000)
		l.Every(ctx, 700*time.Millisecond, func(context.Context) error {
			_, err := io.WriteString(job, sets)
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// catalogueSets are the commands of the job.
func catalogueSets(n int) string {
	var sets strings.Builder
	for i := range n {
		fmt.Fprintf(&sets, "SET catalogue:item:%08d x\r\n", i)
	}
	return sets.String()
}

// invalidations are written to clients that track keys which a job writes, many at once.
var invalidations = Fault{
	Name:  "event-loop-busy",
	Cause: "event-loop-busy",
	Needs: Needs{
		Topologies: []Topology{Standalone, Replicated, Proxied, Namespaced},
		Servers:    serversBut(servers.Redis506),
	},
	Culprit: "import",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"clients": between(r, 5, 300), "keys": between(r, 100, 5000), "every_ms": between(r, 200, 600)}
	},
	Prepare: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		const track = "HELLO 3\r\nCLIENT SETNAME web\r\nCLIENT TRACKING ON BCAST PREFIX catalogue:\r\n"
		for range s.int("clients") {
			if _, err := l.discard(ctx, st.Server.Addr, track); err != nil {
				return err
			}
		}
		return nil
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		job, err := l.discard(ctx, st.Server.Addr, "CLIENT SETNAME import\r\n")
		if err != nil {
			return err
		}
		sets := catalogueSets(s.int("keys"))
		l.Every(ctx, s.millis("every_ms"), func(context.Context) error {
			_, err := io.WriteString(job, sets)
			return err
		})
		return nil
	},
}
