package remedy

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/format"
)

// ClusterCLI is a command of redis-cli for a cluster, as --cluster fix is, which begins at the node.
func ClusterCLI(n *facts.Node, command string, words ...string) string {
	line, _, _ := strings.Cut(CLI(n), " ")
	if connection.ConnectionCostOf(n).TLS {
		line += " --tls"
	}
	address := format.Shell(n.Address)
	if strings.HasPrefix(n.Address, "/") {
		address = "<the address of a node>"
	}
	line += " --cluster " + command + " " + address
	for _, w := range words {
		line += " " + format.Shell(w)
	}
	return line
}

// ConfigSetAll sets a parameter of all nodes of a cluster that answer. The undo is for nodes that all have the present
// value of this one.
func ConfigSetAll(n *facts.Node, id, parameter, value, why string) Step {
	s := ConfigSet(n, id, parameter, value, why)
	s.Command = ClusterCLI(n, "call", "CONFIG", "SET", parameter, value)
	if s.Undo != "" {
		s.Undo = ClusterCLI(n, "call", "CONFIG", "SET", parameter, s.From)
	}
	return s
}

// MoveInLargeSteps is how slots change owner without many changes of the map.
func MoveInLargeSteps(n *facts.Node) Step {
	command, since := moveSlots(n)
	return Step{
		ID: "move-in-large-steps", Kind: Change,
		Text: "Give whole ranges of slots to their new owner at once, not slot by slot: the map changes once for all " +
			"of them, as by " + command + " (" + since + ")",
	}
}

// moveSlots is the command by which servers move slots by replication, and since when.
func moveSlots(n *facts.Node) (command, since string) {
	switch {
	case strings.HasPrefix(n.Server(), "valkey"):
		return "CLUSTER MIGRATESLOTS", "Valkey 9.0"
	case strings.HasPrefix(n.Server(), "redis"):
		return "CLUSTER MIGRATION IMPORT", "Redis 8.4"
	}
	return "CLUSTER MIGRATION IMPORT of Redis, CLUSTER MIGRATESLOTS of Valkey", "Redis 8.4, Valkey 9.0"
}

// MigrateByReplication is how slots move without MIGRATE, ASK and TRYAGAIN.
func MigrateByReplication(n *facts.Node) Step {
	command, since := moveSlots(n)
	return Step{
		ID: "migrate-by-replication", Kind: Change, Since: since,
		Text: "Let the servers move slots by replication, as a whole: " + command + ". No key is blocked, and no " +
			"call gets ASK or TRYAGAIN",
	}
}

// SplitBigKeys is what makes the move of a key short.
var SplitBigKeys = Step{
	ID: "split-big-keys", Kind: Change, Restart: "the application",
	Text: "Split big keys before they are moved, into keys of at most 1 000 elements or 100 kB, and pause for a " +
		"millisecond after each: a server then does nothing else for about a millisecond at a time. redis-cli " +
		"--memkeys on a replica finds them",
}

// FailOverFirst is how a master is restarted without a pause.
var FailOverFirst = Step{
	ID: "fail-over-first", Kind: Change,
	Text: "Before a planned restart let a replica take over: CLUSTER FAILOVER at the replica, FAILOVER at the master " +
		"(Redis 6.2), or SENTINEL FAILOVER. Callers wait for it for milliseconds",
}

// StepOf is what a library offers against a mechanism, whatever is in use; ok is false where it has nothing.
func StepOf(topic Topic, library string) (s Step, ok bool) {
	for _, e := range table[topic] {
		if e.Library == library && e.Version == "" {
			return e.step(topic, nil), true
		}
	}
	return Step{}, false
}

// ProxySteps are those of a topic whose rows are proxies and not libraries of clients.
func ProxySteps(topic Topic) (steps []Step) {
	for _, e := range table[topic] {
		s := e.step(topic, nil)
		s.Restart = ""
		steps = append(steps, s)
	}
	return steps
}
