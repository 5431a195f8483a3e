package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// whomFlags say whose calls the kernel source passes on.
type whomFlags struct{ tap.ProcessFilter }

func (w *whomFlags) add(f *pflag.FlagSet) {
	f.IntVar(&w.PID, "pid", 0, "only calls from or to this `process`; without TARGET also which server that is")
	f.StringVar(&w.Comm, "comm", "", "only calls from or to processes of this `name`, as in ps")
	f.StringVar(&w.Container, "container", "", "only calls from or to this container: begin of its `id`, or part of "+
		"its cgroup's path")
}

// check refuses what cannot be met.
func (w *whomFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"pid", "comm", "container"} {
		if f := cmd.Flags().Lookup(name); f.Changed && (f.Value.String() == "" || f.Value.String() == "0") {
			return usagef("--%s is empty: name one, or leave it out for all", name)
		}
	}
	if w.PID < 0 {
		return usagef("--pid %d: must not be negative", w.PID)
	}
	if strings.ContainsRune(w.Comm, '/') {
		return usagef("--comm %s is a path: give the name alone, as ps -o comm shows it", w.Comm)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", w.PID)); w.PID != 0 && err != nil {
		return usagef("--pid %d: there is no such process on this host; ps -eo pid,comm lists them", w.PID)
	}
	return nil
}

// unnamed says that the command line names no server.
func (a *app) unnamed(args []string) bool {
	return len(args) == 0 && a.where.Host == "" && a.where.Port == 0 && a.where.Socket == "" && a.where.URI == ""
}

// serverOf gives the targets that --pid stands for where none is named: a server's own addresses. To the peers of a
// client nothing is sent before the user has said which of them is the server.
func (a *app) serverOf(cmd *cobra.Command, pid int, args []string) ([]string, error) {
	if pid == 0 || !a.unnamed(args) {
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
		return nil, usagef("--pid %d: the server is in a network namespace of its own; name the address at which it "+
			"is reached: %s HOST:PORT --pid %d", pid, cmd.CommandPath(), pid)
	}
	return args, nil
}

// ownNetwork says that the loopback address of a process is that of slowpath, too.
func ownNetwork(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	ours, ownErr := os.Readlink("/proc/self/ns/net")
	return err == nil && ownErr == nil && theirs == ours
}

// maxPeers are named in an error, at most.
const maxPeers = 8

// notNamed tells which servers could be meant.
func notNamed(cmd *cobra.Command, pid int) error {
	p, peers, err := host.Connected(nil, pid)
	if err != nil {
		return usagef("--pid %d: %w; name the server: %s HOST:PORT --pid %d", pid, err, cmd.CommandPath(), pid)
	}
	if len(peers) == 0 {
		return usagef("--pid %d: %s has no TCP connection to a server now; name the server: %s HOST:PORT --pid %d", pid,
			p.Comm, cmd.CommandPath(), pid)
	}
	var names []string
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		names = append(names, fmt.Sprintf("%s (%d)", peer.Addr, peer.Connections))
	}
	if more := len(peers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return usagef("--pid %d: %s is connected to %s; say which of them is the server: %s %s --pid %d", pid, p.Comm,
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
