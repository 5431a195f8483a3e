package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

const (
	narrowMTU = 1400
	dropICMP  = "table inet filter {\n chain out {\n  type filter hook output priority 0;\n  icmp code frag-needed " +
		"drop;\n }\n}\n"
	clampMSS = "table inet clamp {\n chain forward {\n  type filter hook forward priority 0;\n  tcp flags syn tcp " +
		"option maxseg size set rt mtu;\n }\n}\n"
	largeEvery = 100
)

// narrow makes a server that its clients reach over a narrow path. One of largeEvery calls is a GET or SET of 3 kB; its
// routers are silent about that, or not.
func narrow(command string, silent bool) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		path, err := fault.NewNarrowPath(ctx, l, ns, narrowMTU)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr, Config: []string{
			"bind " + ns.Addr + " " + path.Addr,
		}})
		if err != nil {
			return Scene{}, err
		}
		value := strings.Repeat("v", 3000)
		if _, err := s.Do(ctx, "MSET", "large", value, "lab:1", value[:100]); err != nil {
			return Scene{}, err
		}
		far := net.JoinHostPort(path.Addr, strconv.Itoa(s.Port))
		large, target := []string{"SET", "large", value}, far
		if command == "GET" {
			large = []string{"GET", "large"}
			target = s.Addr // what the server says of itself would not arrive by the path either
		}
		rules := ""
		if silent && !l.Fixed("let-icmp-pass") {
			rules = dropICMP
		}
		if l.Fixed("clamp-mss") {
			rules += clampMSS
		}
		for _, router := range path.Routers {
			if err := router.Rules(ctx, rules); err != nil {
				return Scene{}, err
			}
		}
		took := l.timings("calls over the narrow path")
		for range 20 {
			c := &idler{addr: far, took: took}
			l.Defer(func(context.Context) error { c.drop(); return nil })
			l.startCallers(ctx, 1, 20*time.Millisecond, func(ctx context.Context) error {
				args := []string{"GET", "lab:1"}
				if rand.IntN(largeEvery) == 0 {
					args = large
				}
				err := c.call(ctx, args...)
				if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
					return nil // its user sees an error, and goes on
				}
				return err
			})
		}
		return Scene{Target: target}, nil
	}
}
