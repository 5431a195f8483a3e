// Package changes is the ledger of what was changed at the servers and their hosts during a watch, derived from what a
// recording has of it: settings, commands that change a server, restarts, roles and maps, limits. It says nothing about
// causes.
package changes

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// Kind is a kind of change.
type Kind string

// Kinds of changes.
const (
	Setting Kind = "setting" // a parameter of the server (CONFIG SET)
	Command Kind = "command" // a command that changes the server, its cluster or its other clients
	Restart Kind = "restart" // of the server
	Version Kind = "version" // of the server
	Role    Kind = "role"    // of the server: primary or replica
	Map     Kind = "map"     // of the cluster: who owns the slots
	Limit   Kind = "limit"   // of a cgroup of the server: CPU quota, memory
	CPUs    Kind = "cpus"    // on which the server may run
)

// Change is something that was changed.
type Change struct {
	Kind Kind
	// Node is the server that it is about; empty for the host, or several.
	Node string
	// Span is when: it is exact to its length. Times are nanoseconds since the Unix epoch.
	facts.Span
	// Names are what a cause names it by: the parameter, the command, "cpu quota".
	Names []string
	// Text says what was changed: "CONFIG SET maxmemory 100mb (before: 0)".
	Text string
	// By is who changed it, each by the name of its process or its address; several where it may be one of them.
	By []string
	// Source is the source that saw it.
	Source string
}

// Of are the changes of a case, in order of time.
func Of(c *facts.Case) (out []Change) {
	for _, n := range c.Nodes {
		l := ledger{n: n}
		l.settings()
		l.commands()
		l.restarts()
		l.roles()
		l.limits()
		out = append(out, l.all...)
	}
	out = append(out, slotMaps(c)...)
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.FromNs, b.FromNs) })
	return out
}

// ledger collects the changes of a node.
type ledger struct {
	n   *facts.Node
	all []Change
}

func (l *ledger) add(c Change) {
	c.Node = l.n.Address
	l.all = append(l.all, c)
}

// who names a client by its process, where it is on this host, else by its address and what the server knows of it.
func (l *ledger) who(client, process string, atNs int64) string {
	for _, caller := range l.n.Callers() {
		for _, k := range caller.Conns {
			if caller.PID > 0 && k.Client == client && k.OpenNs <= atNs && (k.CloseNs == 0 || k.CloseNs >= atNs) {
				return caller.Name
			}
		}
	}
	if process != "" {
		return process
	}
	return l.n.ClientText(account.Suspect{Client: client})
}

// changed says what has which value now, and which it had.
func changed(what, to, from string) string {
	return fmt.Sprintf("%s %s (before: %s)", what, value(to), value(from))
}
