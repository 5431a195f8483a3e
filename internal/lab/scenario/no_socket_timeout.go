package scenario

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// noSocketTimeout silently drops the packets of three connections of a client, as when a host has died or a firewall
// has forgotten them. The library has no timeout of its own, and three workers wait until TCP gives up after 15
// minutes. All others are served.
var noSocketTimeout = Scenario{
	ID:    "no-socket-timeout",
	Cause: "no-socket-timeout",
	Title: "a redigo client without a read timeout, three of whose connections the path drops",
	Fixes: []string{"reply-timeout"},
	Make:  dropped(clients.Redigo, clients.Options{Workers: 12, Rate: 600, Random: true, MaxIdle: 12}, 3),
}

// noSocketTimeoutIORedis does so with the one connection that all callers of a process share.
var noSocketTimeoutIORedis = Scenario{
	ID:    "no-socket-timeout-ioredis",
	Cause: "no-socket-timeout",
	Title: "an ioredis client without commandTimeout, whose only connection the path drops",
	Make:  dropped(clients.IORedis, clients.Options{Workers: 12, Rate: 600, Random: true}, 1),
}

// noSocketTimeoutLostReply loses single replies after the server sent them, as a proxy that lost its own connection
// does: the requests are acknowledged, TCP has nothing to retransmit, and one worker after the other waits for ever.
var noSocketTimeoutLostReply = Scenario{
	ID:    "no-socket-timeout-lost-reply",
	Cause: "no-socket-timeout",
	Title: "a redigo client without a read timeout, behind a proxy that loses one reply of 500",
	Watch: 12 * time.Second,
	Make:  lostReplies(clients.Redigo, clients.Options{Workers: 30, Rate: 600, Random: true, MaxIdle: 30}, 500),
}

// dropped runs a client of a server in another namespace, which drops the packets of some of its connections once the
// client is ready.
func dropped(program clients.Name, o clients.Options, conns int) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 3); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 5, Rate: 200, Command: traffic.Mixed(10_000)})
		l.StepsOf(string(program))
		if l.Fixed("reply-timeout") {
			o.ReadTimeout = time.Second // as the step says
		}
		o.Addresses, o.Name, o.Commands, o.Keys = []string{s.Addr}, "orders", smallReads(), Documents
		if err := l.Client(ctx, ClientSpec{Program: program, Options: o}); err != nil {
			return Scene{}, err
		}
		ports, err := portsOf(ctx, s, o.Name, conns)
		if err != nil {
			return Scene{}, err
		}
		rules := fmt.Sprintf("table inet gone {\n chain in {\n  type filter hook input priority 0;\n  tcp sport { "+
			"%[1]s } drop;\n }\n chain out {\n  type filter hook output priority 0;\n  tcp dport { %[1]s } drop;\n "+
			"}\n}\n", strings.Join(ports, ", "))
		return Scene{Target: s.Addr}, ns.Rules(ctx, rules)
	}
}

// portsOf returns the ports of connections that a server has from a client with a name, and waits until there are that
// many.
func portsOf(ctx context.Context, s *fleet.Instance, name string, conns int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, clientReady)
	defer cancel()
	for {
		reply, err := s.Do(ctx, "CLIENT", "LIST")
		if err != nil {
			return nil, err
		}
		ports := portsIn(fmt.Sprint(reply), name)
		if len(ports) >= conns {
			return ports[:conns], nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return nil, fmt.Errorf("%s has %d connections with the name %s, not %d: %w", s.Addr, len(ports), name,
				conns, ctx.Err())
		}
	}
}

// portsIn finds the ports of the clients with a name in a CLIENT LIST.
func portsIn(list, name string) (out []string) {
	for line := range strings.Lines(list) {
		_, rest, _ := strings.Cut(line, " addr=")
		text, _, _ := strings.Cut(rest, " ")
		if addr, err := netip.ParseAddrPort(text); err == nil && strings.Contains(line, " name="+name+" ") {
			out = append(out, itoa(int(addr.Port())))
		}
	}
	return out
}
