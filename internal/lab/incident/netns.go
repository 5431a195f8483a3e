package incident

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"

	"slowpath/internal/lab/fleet"
)

// netNS is a network namespace of its own, joined to this one by a pair of virtual Ethernet devices.
type netNS struct {
	Name   string
	Addr   string // inside
	device string // inside
}

// namespaces counts those that this process made: the devices of one that was removed may linger.
var namespaces atomic.Int32

// NetNS makes a namespace that ends with the lab; the pair of devices goes with it. Its addresses are of 198.18.0.0/15,
// which RFC 2544 keeps for tests like this.
func (l *Lab) NetNS(ctx context.Context) (*netNS, error) {
	if err := needRoot("a network namespace"); err != nil {
		return nil, err
	}
	id := (os.Getpid()*4 + int(namespaces.Add(1))) % (1 << 15)
	subnet := fmt.Sprintf("198.%d.%d", 18+id>>14, id>>6&0xff)
	host := id & 0x3f << 2
	n := &netNS{
		Name: fmt.Sprintf("slowpath-lab-%d", id), Addr: fmt.Sprintf("%s.%d", subnet, host+2),
		device: fmt.Sprintf("splab%dp", id),
	}
	e, err := l.Registry.Add(fleet.Entry{Kind: fleet.KindNetNS, Name: n.Name})
	if err != nil {
		return nil, err
	}
	l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, e) })
	here, there := fmt.Sprintf("splab%d", id), n.device
	for _, line := range []string{
		"ip netns add " + n.Name,
		"ip link add " + here + " type veth peer name " + there + " netns " + n.Name,
		fmt.Sprintf("ip addr add %s.%d/30 dev %s", subnet, host+1, here),
		"ip link set " + here + " up",
		fmt.Sprintf("ip -n %s addr add %s/30 dev %s", n.Name, n.Addr, there),
		fmt.Sprintf("ip -n %s link set %s up", n.Name, there),
		fmt.Sprintf("ip -n %s link set lo up", n.Name),
	} {
		if err := run(ctx, "", strings.Fields(line)...); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Rules loads nftables rules into the namespace, where they end with it.
func (n *netNS) Rules(ctx context.Context, rules string) error {
	return run(ctx, rules, "ip", "netns", "exec", n.Name, "nft", "-f", "-")
}

// run runs a command; one that is not installed or not allowed means that this machine cannot make the incident.
func run(ctx context.Context, input string, argv ...string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s: %w: %s", ErrCannot, strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
