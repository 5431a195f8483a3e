package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// packetLossRTO loses segments of requests.
var packetLossRTO = Scenario{
	ID:       "packet-loss-rto",
	Cause:    "packet-loss-rto",
	Title:    "a path that loses 3 % of the segments to the server",
	Unproven: "mending the path is the end of the fault; a shorter RTO makes each loss cheaper, and leaves it",
	Make:     lossy("input", "dport"),
}

// lossy makes a server behind a path that loses 3 % of the segments that match.
func lossy(hook, port string) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		if err := ns.Rules(ctx, loss(hook, port, s.Port, 3)); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	}
}

// loss are rules of nft(8) that lose a share of the segments of a port, in percent.
func loss(hook, port string, number int, percent float64) string {
	return fmt.Sprintf("table inet loss {\n chain lose {\n  type filter hook %s priority 0;\n  tcp %s %d "+
		"numgen random mod 10000 < %.0f drop;\n }\n}\n", hook, port, number, percent*100)
}

// segmentLoss loses segments of requests, or of replies.
var segmentLoss = Fault{
	Name:  "packet-loss-rto",
	Cause: "packet-loss-rto",
	Needs: Needs{Topologies: []Topology{Namespaced}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"loss_percent": between(r, 0.05, 5), "of_replies": float64(r.IntN(2))}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		hook, port := "input", "dport"
		if s["of_replies"] > 0 {
			hook, port = "output", "sport"
		}
		l.Defer(func(ctx context.Context) error { return st.NetNS.Rules(ctx, "delete table inet loss\n") })
		return st.NetNS.Rules(ctx, loss(hook, port, st.Server.Port, s["loss_percent"]))
	},
}
