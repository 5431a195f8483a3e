package incident

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// What arrives beside the server, and what it is compared with: a burst took 7 ms of a virtual machine on an AMD EPYC,
// which makes half of the CPU.
const (
	packetsPerBurst = 600 // below net.core.netdev_max_backlog (1000): the server's own replies wait in the same queue
	burstGap        = 15 * time.Millisecond
	firewallRules   = 500
	discardPort     = 9
)

// softirqOnRedisCore has the kernel receive the packets of another service on the only CPU that the server may use,
// through a firewall with many rules. That happens in softirqs, which go before every process, and in ksoftirqd.
var softirqOnRedisCore = Incident{
	ID:    "softirq-on-redis-core",
	Cause: "softirq-on-redis-core",
	Title: "40 000 packets per second for somebody else, received on the server's only CPU",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if runtime.NumCPU() < 2 {
			return Scene{}, fmt.Errorf("%w: it needs two CPUs, one of them for who sends the packets", ErrCannot)
		}
		ns, err := l.NetNS(ctx)
		if err != nil {
			return Scene{}, err
		}
		if err := ns.receiveOn(ctx, 0); err != nil {
			return Scene{}, err
		}
		if err := ns.Rules(ctx, longFirewall()); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		took := l.timings("callers")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000), Took: took.add})
		return Scene{Target: s.Addr}, l.flood(ctx, ns.Addr, 1)
	},
}

// receiveOn lets one CPU handle what comes into the namespace, whichever sent it (receive packet steering, kernel
// Documentation/networking/scaling.rst), as a network card does whose interrupt is bound to that CPU.
func (n *netNS) receiveOn(ctx context.Context, cpu int) error {
	write := fmt.Sprintf("echo %x > /sys/class/net/%s/queues/rx-0/rps_cpus", 1<<cpu, n.device)
	return run(ctx, "", "ip", "netns", "exec", n.Name, "sh", "-c", write)
}

// longFirewall compares every packet with addresses that none has; then the packets of the flood have come far enough.
func longFirewall() string {
	var b strings.Builder
	b.WriteString("table inet firewall {\n chain in {\n  type filter hook input priority 0;\n")
	for i := range firewallRules {
		fmt.Fprintf(&b, "  ip saddr 203.0.%d.%d drop\n", i>>8, i&0xff)
	}
	fmt.Fprintf(&b, "  udp dport %d drop\n }\n}\n", discardPort)
	return b.String()
}

// flood sends bursts of small datagrams from another CPU until the incident ends.
func (l *Lab) flood(ctx context.Context, host string, cpu int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, itoa(discardPort)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error)
	go func() { done <- sendBursts(ctx, c, cpu) }()
	l.Defer(func(context.Context) error { cancel(); return errors.Join(<-done, c.Close()) })
	return nil
}

func sendBursts(ctx context.Context, c net.Conn, cpu int) error {
	if err := pinThread(cpu); err != nil {
		return err
	}
	packet := make([]byte, 64)
	tick := time.NewTicker(burstGap)
	defer tick.Stop()
	for {
		for range packetsPerBurst {
			_, _ = c.Write(packet) // nobody waits for it
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
