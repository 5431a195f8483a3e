package incident

import (
	"context"
	"fmt"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// packetLossRTO loses segments of requests.
var packetLossRTO = Incident{
	ID:    "packet-loss-rto",
	Cause: "packet-loss-rto",
	Title: "a path that loses 3 % of the segments to the server",
	Make:  lossy("input", "dport"),
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
		rules := fmt.Sprintf("table inet loss {\n chain lose {\n  type filter hook %s priority 0;\n  tcp %s %d "+
			"numgen random mod 100 < 3 drop;\n }\n}\n", hook, port, s.Port)
		if err := ns.Rules(ctx, rules); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	}
}
