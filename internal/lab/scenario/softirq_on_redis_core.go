package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"

	"golang.org/x/sys/unix"
)

// The packets that arrive, and the firewall rules that each is compared with. A burst took 7 ms of a virtual machine on
// an AMD EPYC, which is half of the CPU.
const (
	// below net.core.netdev_max_backlog (1000), since the server's own packets are in the same queue
	packetsPerBurst = 600
	burstGap        = 15 * time.Millisecond
	firewallRules   = 1000
	discardPort     = 9
)

// softirqOnRedisCore lets the kernel receive the packets of another service on the only CPU that the server may use,
// through a firewall with many rules. That happens in softirqs, which run before every process, and in ksoftirqd.
var softirqOnRedisCore = Scenario{
	ID:    "softirq-on-redis-core",
	Cause: "softirq-on-redis-core",
	Title: "40 000 packets per second for another service, received on the only CPU of the server",
	Fixes: []string{"move-server"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if runtime.NumCPU() < 2 {
			return Scene{}, fmt.Errorf("%w: it needs two CPUs, one of them to send the packets", fault.ErrCannot)
		}
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		if err := receiveOn(ctx, ns, 0); err != nil {
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

// receiveOn lets one CPU process all packets that enter a namespace (receive packet steering, kernel
// Documentation/networking/scaling.rst), as if the interrupt of a network card were bound to that CPU.
func receiveOn(ctx context.Context, n *fault.NetNS, cpu int) error {
	return n.Shell(ctx, fmt.Sprintf("echo %x > /sys/class/net/%s/queues/rx-0/rps_cpus", 1<<cpu, n.Device))
}

// longFirewall compares every packet with many addresses that none has, and then drops the packets of the flood.
func longFirewall() string {
	var b strings.Builder
	b.WriteString("table inet firewall {\n chain in {\n  type filter hook input priority 0;\n")
	for i := range firewallRules {
		fmt.Fprintf(&b, "  ip saddr 203.0.%d.%d drop\n", i>>8, i&0xff)
	}
	fmt.Fprintf(&b, "  udp dport %d drop\n }\n}\n", discardPort)
	return b.String()
}

// flood sends bursts of small datagrams from a CPU until the scenario ends.
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
			_, _ = c.Write(packet) // it is dropped anyway
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// pinThread lets the calling goroutine run on one CPU only. Its thread ends with it, so that no other goroutine
// inherits the pin.
func pinThread(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pinning a thread of the lab to CPU %d: %w", cpu, err)
	}
	return nil
}
