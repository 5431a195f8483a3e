package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// Names of echoes.
const (
	EchoTCP  = "tcp"
	EchoICMP = "icmp"
)

// echoTimeout is how long an answer is waited for: one that comes later is told from the network by no one.
const echoTimeout = time.Second

// Echo asks the kernel of the server's host, and not the server: it tells the network and that host from the process.
type Echo struct {
	Name string
	ask  func(ctx context.Context) error
}

// TCPEcho is a TCP connect, which the kernel of the listener's host answers, and its close. The server accepts the
// connection and sees it end.
func TCPEcho(server netip.AddrPort) Echo {
	return Echo{EchoTCP, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.String())
		if err == nil {
			err = c.Close()
		}
		return err
	}}
}

// ICMPEcho is that of ping. Errors: this process may open no such socket.
func ICMPEcho(server netip.Addr) (Echo, error) {
	var failed error
	for _, network := range icmpNetworks(server) {
		c, err := icmp.ListenPacket(network, "")
		if err == nil {
			c.Close()
			return Echo{EchoICMP, func(ctx context.Context) error { return ping(ctx, network, server) }}, nil
		}
		failed = err
	}
	return Echo{}, fmt.Errorf("opening a socket for ICMP: %w", failed)
}

// icmpNetworks are the kinds of sockets for ICMP: one that any user of net.ipv4.ping_group_range may open, and a raw
// one, which needs CAP_NET_RAW.
func icmpNetworks(server netip.Addr) []string {
	if server.Is4() {
		return []string{"udp4", "ip4:icmp"}
	}
	return []string{"udp6", "ip6:ipv6-icmp"}
}

// ping sends one echo and waits for its reply.
func ping(ctx context.Context, network string, server netip.Addr) error {
	c, err := icmp.ListenPacket(network, "")
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline() // without one: none
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	var to net.Addr = &net.IPAddr{IP: server.AsSlice(), Zone: server.Zone()}
	if network == "udp4" || network == "udp6" {
		to = &net.UDPAddr{IP: server.AsSlice(), Zone: server.Zone()}
	}
	request, number := icmp.Type(ipv4.ICMPTypeEcho), ipv4.ICMPTypeEchoReply.Protocol()
	if server.Is6() {
		request, number = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply.Protocol()
	}
	// the kernel gives a socket for users an id of its own; the data tells the reply from all others
	data := fmt.Appendf(nil, "slowpath %d %016x", os.Getpid(), rand.Uint64())
	m := icmp.Message{Type: request, Body: &icmp.Echo{ID: os.Getpid() & 0xffff, Seq: 1, Data: data}}
	b, err := m.Marshal(nil)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(b, to); err != nil {
		return err
	}
	return awaitEcho(c, number, data)
}

// awaitEcho reads until the reply with this data comes: a raw socket has what all of the host receive.
func awaitEcho(c *icmp.PacketConn, protocol int, data []byte) error {
	b := make([]byte, 1500)
	for {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		m, err := icmp.ParseMessage(protocol, b[:n])
		if err != nil {
			continue
		}
		reply := m.Type == ipv4.ICMPTypeEchoReply || m.Type == ipv6.ICMPTypeEchoReply
		if e, ok := m.Body.(*icmp.Echo); ok && reply && string(e.Data) == string(data) {
			return nil
		}
	}
}

// beside asks all echoes at once, while a cycle runs. The function that it returns waits for them.
func (p *prober) beside(ctx context.Context) func() map[string]time.Duration {
	type answer struct {
		name string
		took time.Duration
		err  error
	}
	answers := make(chan answer, len(p.Beside))
	for _, e := range p.Beside {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), echoTimeout)
			defer cancel()
			begin := time.Now()
			err := e.ask(ctx)
			answers <- answer{e.Name, time.Since(begin), err}
		}()
	}
	return func() map[string]time.Duration {
		out := map[string]time.Duration{}
		for range p.Beside {
			if a := <-answers; a.err == nil {
				out[a.name] = a.took
			}
		}
		return out
	}
}
