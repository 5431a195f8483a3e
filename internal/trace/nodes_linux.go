package trace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// ErrSocket says that a target is a unix socket.
var ErrSocket = errors.New("the tap sees TCP only, and not unix sockets")

// busOffset is between the port of a cluster's node and that of its bus.
const busPortOffset = 10000

// isServer recognizes a server by the name of its process. Exporters of metrics listen, too, but for HTTP.
func isServer(comm string) bool {
	return (strings.Contains(comm, "redis") || strings.Contains(comm, "valkey")) && !strings.Contains(comm, "exporter")
}

// LocalServers finds the servers that listen on this host. Each address at which clients may reach one is a node of its
// own; the nodes of one server have the same Address.
func LocalServers(fs host.FS) ([]tap.Node, error) {
	found, err := Listeners(fs)
	var nodes []tap.Node
	for _, l := range found {
		nodes = append(nodes, nodesOf(l, nodes)...)
	}
	return nodes, err
}

// Listeners are where servers of this host listen for clients, in all network namespaces.
func Listeners(fs host.FS) ([]host.Listener, error) {
	found, err := host.Listeners(fs, isServer)
	if err != nil {
		return nil, fmt.Errorf("looking for servers: %w", err)
	}
	var forClients []host.Listener
	for _, l := range found {
		isBus := slices.ContainsFunc(found, func(o host.Listener) bool {
			return o.Process.PID == l.Process.PID && int(o.Addr.Port())+busPortOffset == int(l.Addr.Port())
		})
		if !isBus {
			forClients = append(forClients, l)
		}
	}
	return forClients, nil
}

// nodesOf gives the nodes of a listener. One that listens on all addresses is named by the loopback address.
func nodesOf(l host.Listener, before []tap.Node) (nodes []tap.Node) {
	name := netip.AddrPortFrom(l.Addr.Addr().WithZone(""), l.Addr.Port())
	addrs := []netip.Addr{name.Addr()}
	if l.Addr.Addr().IsUnspecified() {
		loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		name = netip.AddrPortFrom(loopback, l.Addr.Port())
		addrs = append([]netip.Addr{loopback, netip.IPv6Loopback()}, ownAddresses()...)
	}
	label := name.String()
	for _, n := range before { // 0.0.0.0 and [::], 127.0.0.1 and [::1] are one server
		if n.PID == l.Process.PID && n.Port == l.Process.Port {
			label = n.Address
		}
	}
	for _, a := range addrs {
		nodes = append(nodes, tap.Node{
			Address: label, Remote: netip.AddrPortFrom(a, l.Addr.Port()), PID: l.Process.PID,
			Port: l.Process.Port,
		})
	}
	return nodes
}

// maxAddresses bounds the used addresses of this host: with containers it may have hundreds.
const maxAddresses = 32

func ownAddresses() (list []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && len(list) < maxAddresses {
			list = append(list, p.Addr().Unmap().WithZone(""))
		}
	}
	return list
}

// Resolve makes nodes of targets: each address of a name is a node of its own. Notes say what cannot be seen of them.
func Resolve(ctx context.Context, fs host.FS, targets []target.Target) (nodes []tap.Node, notes []string, err error) {
	for _, t := range targets {
		if t.Network == "unix" {
			return nil, nil, fmt.Errorf("%s: %w; give the server's HOST:PORT", t.Addr(), ErrSocket)
		}
		addrs, err := target.Resolve(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		here := false
		var why error
		for _, a := range addrs {
			n := tap.Node{Address: t.Addr(), Remote: a}
			p, err := host.Locate(fs, host.Query{Network: "tcp", Listen: a.String()})
			if err == nil {
				n.PID, n.Port, here = p.PID, p.Port, true
			} else if !errors.Is(err, host.ErrNotHere) {
				why = err
			}
			nodes = append(nodes, n)
		}
		switch {
		case here:
		case why != nil:
			notes = append(notes, fmt.Sprintf("%s: %v", t.Addr(), why))
		case slices.ContainsFunc(addrs, func(a netip.AddrPort) bool { return a.Addr().IsLoopback() }):
			notes = append(notes, fmt.Sprintf("nothing listens at %s now; calls will be seen as soon as a server "+
				"does, "+
				"but not what its threads do", t.Addr()))
		default:
			notes = append(notes, fmt.Sprintf("%s is not on this host: only the clients' end of calls is seen; for "+
				"the server's end run slowpath there, too", t.Addr()))
		}
	}
	return nodes, notes, nil
}
