package named

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// Traced are the servers to be traced: those that the command line names, else those of this host, else 127.0.0.1:6379.
// Notes say what cannot be seen of them. Where none is named, pid must be one of them or call one.
func (c *CommandLine) Traced(cmd *cobra.Command, pid int, args []string) ([]tap.Node, []string, error) {
	nodes, notes, err := c.resolved(cmd.Context(), args)
	if err == nil && c.Unnamed(args) && pid != 0 {
		err = callsNone(cmd, nodes, pid)
	}
	return nodes, notes, err
}

func (c *CommandLine) resolved(ctx context.Context, args []string) (nodes []tap.Node, notes []string, err error) {
	if len(args) == 0 && c.Where.Host == "" && c.Where.Port == 0 {
		if nodes, err = trace.LocalServers(nil); err != nil || len(nodes) > 0 {
			return nodes, nil, err
		}
		notes = append(notes, "no server was found that listens on this host")
	}
	targets, err := c.Targets(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	nodes, more, err := trace.Resolve(ctx, nil, targets)
	if errors.Is(err, trace.ErrSocket) {
		err = cli.Usage(err)
	}
	return nodes, append(notes, more...), err
}

// ServerOf gives the targets that --pid means where none is named: a server's own addresses. To the peers of a
// client nothing is sent before the user has said which of them is the server.
func (c *CommandLine) ServerOf(cmd *cobra.Command, pid int, args []string) ([]string, error) {
	if pid == 0 || !c.Unnamed(args) {
		return args, nil
	}
	nodes, err := trace.LocalServers(nil)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.PID == pid && !slices.Contains(args, n.Address) {
			args = append(args, n.Address)
		}
	}
	if len(args) == 0 {
		return nil, notNamed(cmd, pid)
	}
	if !ownNetwork(pid) {
		return nil, cli.Usagef("--pid %d: the server is in a network namespace of its own; name the address at "+
			"which it is reached: %s HOST:PORT --pid %d", pid, cmd.CommandPath(), pid)
	}
	return args, nil
}

// Servers are the servers that listen on this host, one address of each. Those in other network namespaces come
// last, and where they listen on loopback alone they are left out.
func Servers() (found []Server) {
	list, err := trace.Listeners(nil)
	if err != nil {
		return nil
	}
	var apart []Server
	for _, l := range list {
		pid := l.Process.PID
		if same := func(s Server) bool { return s.PID == pid }; slices.ContainsFunc(found, same) ||
			slices.ContainsFunc(apart, same) {
			continue
		}
		if ownNetwork(pid) {
			found = append(found, Server{Address: reachedAt(l, netip.AddrFrom4([4]byte{127, 0, 0, 1})), PID: pid})
		} else if addrs := host.Addresses(nil, pid); len(addrs) > 0 && !l.Addr.Addr().IsLoopback() {
			apart = append(apart, Server{Address: reachedAt(l, addrs[0]), PID: pid, Apart: true})
		}
	}
	return append(found, apart...)
}

// reachedAt is the address of a listener; of one that listens on all addresses, its port at one of them.
func reachedAt(l host.Listener, one netip.Addr) string {
	if l.Addr.Addr().IsUnspecified() {
		return netip.AddrPortFrom(one, l.Addr.Port()).String()
	}
	return l.Addr.String()
}

// ownNetwork says that the loopback address of a process is that of slowpath, too.
func ownNetwork(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	ours, ownErr := os.Readlink("/proc/self/ns/net")
	return err == nil && ownErr == nil && theirs == ours
}

// maxPeers are named in an error, at most.
const maxPeers = 8

// notNamed is an error that lists which servers could be meant.
func notNamed(cmd *cobra.Command, pid int) error {
	p, peers, err := host.Connected(nil, pid)
	if err != nil {
		return cli.Usagef("--pid %d: %w; name the server: %s HOST:PORT --pid %d", pid, err, cmd.CommandPath(), pid)
	}
	if len(peers) == 0 {
		return cli.Usagef("--pid %d: %s has no TCP connection to a server now; name the server: %s HOST:PORT --pid %d",
			pid, p.Comm, cmd.CommandPath(), pid)
	}
	var names []string
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		names = append(names, fmt.Sprintf("%s (%d)", peer.Addr, peer.Connections))
	}
	if more := len(peers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cli.Usagef("--pid %d: %s is connected to %s; say which of them is the server: %s %s --pid %d", pid, p.Comm,
		strings.Join(names, ", "), cmd.CommandPath(), peers[0].Addr, pid)
}

// callsNone is an error where a process is none of these servers and calls none of them.
func callsNone(cmd *cobra.Command, nodes []tap.Node, pid int) error {
	_, peers, _ := host.Connected(nil, pid) // none where they may not be seen
	for _, n := range nodes {
		if n.PID == pid || slices.ContainsFunc(peers, func(p host.Peer) bool { return p.Addr == n.Remote }) {
			return nil
		}
	}
	return notNamed(cmd, pid)
}
