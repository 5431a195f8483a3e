// Package changes is what was changed at the servers and their hosts during a watch, and in the recording of an
// incident just before it, derived from what the recording has: settings, commands that change a server, restarts,
// roles, maps, limits, the host's network and packages, what callers do otherwise, marks. It says nothing about causes.
package changes

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// Kind is a kind of change.
type Kind string

// Kinds of changes.
const (
	Setting    Kind = "setting"     // a parameter of the server (CONFIG SET)
	Command    Kind = "command"     // a command that changes the server, its cluster or its other clients
	Restart    Kind = "restart"     // of the server
	Version    Kind = "version"     // of the server
	Role       Kind = "role"        // of the server: primary or replica
	Map        Kind = "map"         // of the cluster: who owns the slots
	Limit      Kind = "limit"       // of a cgroup of the server: CPU quota, memory
	CPUs       Kind = "cpus"        // on which the server may run
	Caller     Kind = "caller"      // a program that was not there before
	NewCommand Kind = "new-command" // that the server had not counted before
	Load       Kind = "load"        // how much callers ask rose at once
	Network    Kind = "network"     // routes, queueing disciplines, nftables of the host
	Package    Kind = "package"     // packages of the host
	Mark       Kind = "mark"        // what somebody told the agent, such as a deploy
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
	own := c.Nodes
	c = c.WithEarlier()
	for i, n := range c.Nodes {
		h := history{n: n}
		h.settings()
		h.commands()
		h.restarts()
		h.roles()
		h.limits()
		h.load()
		h.callers(own[i]) // of the time before it no connections are known
		out = append(out, h.all...)
	}
	out = append(out, slotMaps(c)...)
	for _, e := range c.Rec.EventsOf(recording.SourceWatch, recording.SubjectMachine, recording.KindMark) {
		out = append(out, Change{
			Kind: Mark, Span: facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs}, Names: []string{"mark"},
			Source: recording.SourceWatch, Text: "marked: " + recording.DetailOf[recording.MarkDetail](e).Text,
		})
	}
	out = append(append(out, network(c)...), packages(c)...)
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.FromNs, b.FromNs), cmp.Compare(a.Text, b.Text))
	})
	return out
}

// history collects the changes of a node.
type history struct {
	n   *facts.Node
	all []Change
}

func (h *history) add(c Change) {
	c.Node = h.n.Address
	h.all = append(h.all, c)
}

// name is a client's process, where that is known, else its address and what the server knows of it.
func name(w caller.Who) string { return cmp.Or(w.Process, w.Text()) }

// changed says what has which value now, and which it had.
func changed(what, to, from string) string {
	return fmt.Sprintf("%s %s (before: %s)", what, value(to), value(from))
}
