package scenario

import (
	"context"
	"fmt"
	"net"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	forgetAfter   = 2 * time.Second // cloud balancers: 240 to 350 s
	idleBetween   = 4 * time.Second // average pause of a caller
	callerTimeout = time.Second     // of a reply; then a caller gives the connection up
)

// idleConnBlackholed puts a firewall before the server. It tracks connections, forgets those that were idle for 2 s,
// and then drops their packets silently. The kernel of a caller that paused longer retransmits until the caller gives
// up after 1 s and opens another connection. Callers without pauses are not affected.
var idleConnBlackholed = Scenario{
	ID:    "idle-conn-blackholed",
	Cause: "idle-conn-blackholed",
	Title: "a firewall that forgets connections after 2 s without packets, and callers that pause for 4 s",
	Fixes: []string{"server-keepalive", "client-keepalive"},
	Watch: 12 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		if err := forgetIdle(ctx, ns, forgetAfter); err != nil {
			return Scene{}, err
		}
		took, others := l.timings("calls after a pause"), l.timings("callers without pauses")
		keepIdle := time.Duration(l.FixedNumber("client-keepalive", 0)) * time.Second
		for range 12 {
			i := &idler{addr: s.Addr, took: took, keepIdle: keepIdle}
			l.Defer(func(context.Context) error { i.drop(); return nil })
			l.startCallers(ctx, 1, idleBetween, func(ctx context.Context) error { return i.call(ctx, "GET", "lab:1") })
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}

// forgetIdle lets connection tracking of a namespace drop flows that are idle for some time. With tcp_loose off a
// packet in the middle of a flow does not begin a new one (kernel Documentation/networking/nf_conntrack-sysctl.rst).
// The rules start the tracking, and are those of firewalls. The FINs of a server that ended get no answer either, and
// their sockets keep the namespace alive: tcp_orphan_retries shortens that.
func forgetIdle(ctx context.Context, n *fault.NetNS, after time.Duration) error {
	const rules = "table inet firewall {\n chain in {\n  type filter hook input priority 0;\n  ct state invalid " +
		"drop;\n }\n}\n"
	if err := n.Rules(ctx, rules); err != nil {
		return err
	}
	const sysctl = "cd /proc/sys/net && echo 0 > netfilter/nf_conntrack_tcp_loose &&" +
		" echo %d > netfilter/nf_conntrack_tcp_timeout_established && echo 1 > ipv4/tcp_orphan_retries"
	return n.Shell(ctx, fmt.Sprintf(sysctl, int(after.Seconds())))
}

// idler is a caller that keeps its connection between calls, and gives it up when a reply takes too long.
type idler struct {
	addr     string
	took     *timings
	keepIdle time.Duration // TCP_KEEPIDLE; 0: no keepalive
	c        *caller
}

// call is one call as its user sees it: it is retried on a new connection when it gets no reply.
func (i *idler) call(ctx context.Context, args ...string) error {
	return i.took.time(func() error {
		if i.c != nil && i.try(ctx, args) == nil {
			return nil
		}
		var err error
		if i.c, err = dialCaller(ctx, net.Dialer{}, i.addr); err != nil {
			return err
		}
		if i.keepIdle > 0 {
			err = i.c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: i.keepIdle, Interval: i.keepIdle})
			if err != nil {
				return err
			}
		}
		return i.try(ctx, args)
	})
}

func (i *idler) try(ctx context.Context, args []string) error {
	err := i.c.SetDeadline(time.Now().Add(callerTimeout))
	defer i.c.endWith(ctx)()
	if err == nil {
		err = i.c.call(args...)
	}
	if err != nil {
		i.drop()
	}
	return err
}

// drop closes without lingering, as Jedis does, so that the kernel does not retransmit a FIN that nobody acknowledges.
func (i *idler) drop() {
	if i.c != nil {
		_ = i.c.SetLinger(0) // only a faster end
		i.c.Close()
		i.c = nil
	}
}
