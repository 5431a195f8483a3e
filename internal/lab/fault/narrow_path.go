package fault

import (
	"context"
	"strconv"
	"strings"

	"slowpath/internal/lab/fleet"
)

// NarrowPath is a second path from this host to a namespace, over two routers. The MTU of the link between them is
// smaller than that of all others, as that of a tunnel or a VPN is.
type NarrowPath struct {
	Addr    string // of the namespace, by this path
	Routers [2]*NetNS
}

// NewNarrowPath makes the path to a namespace. Its routers tell senders of packets that are too large, by ICMP.
func NewNarrowPath(ctx context.Context, l Lab, to *NetNS, mtu int) (*NarrowPath, error) {
	near, err := NewNetNS(ctx, l)
	if err != nil {
		return nil, err
	}
	far := &NetNS{Name: near.Name + "f"}
	if err := l.Register(fleet.Entry{Kind: fleet.KindNetNS, Name: far.Name}); err != nil {
		return nil, err
	}
	_, router, addr := nextLink()
	// 192.0.2.0/24 (RFC 5737) is between the routers, and known to them alone. Each end cuts what it sends into
	// segments itself, or a router would drop all of what is one for it.
	script := strings.NewReplacer("NEAR", near.Name, "FAR", far.Name, "TO", to.Name, "HOST", near.host,
		"DEVICE", near.outside, "NEXT", near.Addr, "ROUTER", router, "ADDR", addr, "MTU", strconv.Itoa(mtu)).Replace(`
		ip netns add FAR
		ip link add narrow netns NEAR type veth peer name narrow netns FAR
		ip -n NEAR addr add 192.0.2.1/30 dev narrow
		ip -n FAR addr add 192.0.2.2/30 dev narrow
		ip -n NEAR link set narrow mtu MTU up
		ip -n FAR link set narrow mtu MTU up
		ip link add last netns FAR type veth peer name last netns TO
		ip -n FAR addr add ROUTER/30 dev last
		ip -n TO addr add ADDR/30 dev last
		ip -n FAR link set last up
		ip -n TO link set last gso_max_segs 1 up
		ip link set DEVICE gso_max_segs 1
		ip netns exec NEAR sysctl -qw net.ipv4.ip_forward=1
		ip netns exec FAR sysctl -qw net.ipv4.ip_forward=1
		ip route add ADDR via NEXT
		ip -n NEAR route add ADDR via 192.0.2.2
		ip -n FAR route add HOST via 192.0.2.1
		ip -n TO route add HOST via ROUTER`)
	for line := range strings.Lines(strings.TrimSpace(script)) {
		if err := run(ctx, "", strings.Fields(line)...); err != nil {
			return nil, err
		}
	}
	return &NarrowPath{Addr: addr, Routers: [2]*NetNS{near, far}}, nil
}
