package fault

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"slowpath/internal/lab/fleet"
)

// NetNS is a network namespace that a pair of virtual Ethernet devices joins to this one.
type NetNS struct {
	Name   string
	Addr   string // IP address inside
	Device string // name of the device inside

	outside string // name of the device of this namespace
	host    string // its address
}

// namespaces counts the namespaces of this process. Each gets its own addresses and device names, since the devices of
// one that was removed may linger.
var namespaces atomic.Int32

// NewNetNS makes a namespace. Its devices go with it. Its addresses are from 198.18.0.0/15, which RFC 2544 reserves for
// tests like this.
func NewNetNS(ctx context.Context, l Lab) (*NetNS, error) {
	if err := needRoot("a network namespace"); err != nil {
		return nil, err
	}
	id, host, inside := nextLink()
	n := &NetNS{
		Name: fmt.Sprintf("slowpath-lab-%d", id), Addr: inside, Device: fmt.Sprintf("splab%dp", id),
		outside: fmt.Sprintf("splab%d", id), host: host,
	}
	if err := l.Register(fleet.Entry{Kind: fleet.KindNetNS, Name: n.Name}); err != nil {
		return nil, err
	}
	for _, line := range []string{
		"ip netns add " + n.Name,
		"ip link add " + n.outside + " type veth peer name " + n.Device + " netns " + n.Name,
		"ip addr add " + n.host + "/30 dev " + n.outside,
		"ip link set " + n.outside + " up",
		fmt.Sprintf("ip -n %s addr add %s/30 dev %s", n.Name, n.Addr, n.Device),
		fmt.Sprintf("ip -n %s link set %s up", n.Name, n.Device),
		fmt.Sprintf("ip -n %s link set lo up", n.Name),
	} {
		if err := run(ctx, "", strings.Fields(line)...); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// nextLink is a number that no other link of this process has, and the addresses of its two ends.
func nextLink() (id int, host, inside string) {
	id = (os.Getpid()*4 + int(namespaces.Add(1))) % (1 << 15)
	subnet, first := fmt.Sprintf("198.%d.%d", 18+id>>14, id>>6&0xff), id&0x3f<<2
	return id, fmt.Sprintf("%s.%d", subnet, first+1), fmt.Sprintf("%s.%d", subnet, first+2)
}

// Rules loads nftables rules into the namespace. They end with it.
func (n *NetNS) Rules(ctx context.Context, rules string) error {
	return run(ctx, rules, "ip", "netns", "exec", n.Name, "nft", "-f", "-")
}

// Shell runs a script of sh(1) in the namespace.
func (n *NetNS) Shell(ctx context.Context, script string) error {
	return run(ctx, "", "ip", "netns", "exec", n.Name, "sh", "-c", script)
}

// LimitReplies limits the bandwidth of what leaves the namespace to a rate of tc(8). The token bucket holds one burst
// of segmentation offload. A sender keeps no more than a few milliseconds of data in the queue
// (tcp_limit_output_bytes), so that other connections hardly wait.
func (n *NetNS) LimitReplies(ctx context.Context, rate string) error {
	return n.shape(ctx, rate, "burst 128kb latency 100ms")
}

// Shape limits what leaves the namespace to a rate of tc(8). What is more waits in a queue of so many bytes. Another
// call changes the rate, and loses nothing of the queue.
func (n *NetNS) Shape(ctx context.Context, rate, queue string) error {
	return n.shape(ctx, rate, "burst 64kb limit "+queue)
}

func (n *NetNS) shape(ctx context.Context, rate, options string) error {
	line := fmt.Sprintf("tc -n %s qdisc replace dev %s root tbf rate %s %s", n.Name, n.Device, rate, options)
	return run(ctx, "", strings.Fields(line)...)
}
