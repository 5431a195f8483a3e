package incident

import (
	"context"
	"fmt"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	forgetAfter   = 2 * time.Second // cloud balancers: 240 to 350 s
	idleBetween   = 4 * time.Second // about what a caller pauses
	callerTimeout = time.Second     // after which a caller gives a connection up
)

// idleConnBlackholed puts a firewall before the server that tracks connections, forgets those that were silent for 2 s,
// and then drops what belongs to none, without a word. Callers that pause longer send into nothing: their kernel sends
// again and again, until they give up after 1 s and open another connection. Others who use theirs all the time notice
// nothing.
var idleConnBlackholed = Incident{
	ID:    "idle-conn-blackholed",
	Cause: "idle-conn-blackholed",
	Title: "a firewall that forgets connections after 2 s of silence, and callers that pause for 4 s",
	Watch: 12 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := l.NetNS(ctx)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		if err := ns.forget(ctx, forgetAfter); err != nil {
			return Scene{}, err
		}
		took, others := l.timings("calls after a pause"), l.timings("callers without pauses")
		for range 12 {
			i := &idler{addr: s.Addr, took: took}
			l.Defer(func(context.Context) error { i.drop(); return nil })
			l.callers(ctx, 1, idleBetween, i.call)
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}

// forget lets connection tracking drop flows after a silence. With tcp_loose off a packet in the middle of a flow does
// not begin a new one (kernel Documentation/networking/nf_conntrack-sysctl.rst); the rules make tracking begin, and are
// what firewalls have. The FINs of a server that ended get no answer either, and their sockets hold on to the
// namespace: tcp_orphan_retries shortens that.
func (n *netNS) forget(ctx context.Context, after time.Duration) error {
	const rules = "table inet firewall {\n chain in {\n  type filter hook input priority 0;\n  ct state invalid " +
		"drop;\n }\n}\n"
	if err := n.Rules(ctx, rules); err != nil {
		return err
	}
	const sysctl = "cd /proc/sys/net && echo 0 > netfilter/nf_conntrack_tcp_loose &&" +
		" echo %d > netfilter/nf_conntrack_tcp_timeout_established && echo 1 > ipv4/tcp_orphan_retries"
	return run(ctx, "", "ip", "netns", "exec", n.Name, "sh", "-c", fmt.Sprintf(sysctl, int(after.Seconds())))
}

// idler is a caller that keeps its connection between calls, without keepalive.
type idler struct {
	addr string
	took *timings
	c    *caller
}

// call is one call as its user sees it: with a second try on a new connection when the first gets no answer.
func (i *idler) call(ctx context.Context) error {
	return i.took.time(func() error {
		if i.c != nil && i.try(ctx) == nil {
			return nil
		}
		var err error
		if i.c, err = dialCaller(ctx, net.Dialer{}, i.addr); err != nil {
			return err
		}
		return i.try(ctx)
	})
}

func (i *idler) try(ctx context.Context) error {
	err := i.c.SetDeadline(time.Now().Add(callerTimeout))
	defer i.c.endWith(ctx)()
	if err == nil {
		err = i.c.ask("GET", "lab:1")
	}
	if err != nil {
		i.drop()
	}
	return err
}

// drop closes without lingering, as Jedis does, so that the kernel does not go on sending a FIN into nothing.
func (i *idler) drop() {
	if i.c != nil {
		_ = i.c.SetLinger(0) // only a faster end
		i.c.Close()
		i.c = nil
	}
}
