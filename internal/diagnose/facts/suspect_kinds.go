package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
)

// Kind is what a command that others waited for did for so long. Several kinds look alike from afar, a busy loop and a
// command in SLOWLOG; KindOf tells them apart in one place, so that no suspect is claimed by two causes.
type Kind int

// Kinds of commands that hold the event loop.
const (
	KindOther         Kind = iota // its work does not explain its duration, or it holds nobody up
	KindSlowCommand               // many elements
	KindFrameworkKeys             // keys that a framework keeps beside those of its users
	KindScriptOrMulti             // a script, or MULTI with many commands
	KindFlush                     // FLUSHALL, FLUSHDB
	KindFree                      // a big value was freed
	KindBulkTransfer              // a big value was read or written
	KindManyKeys                  // one command with many keys
	KindEviction                  // keys were evicted to stay below maxmemory
	KindFork                      // the fork of a snapshot or of a rewrite
	KindMigrate                   // MIGRATE or RESTORE of a key
	KindMapCommand                // CLUSTER NODES, SLOTS, SHARDS
	KindClientListing             // commands whose work grows with the number of clients
	KindIntrospection             // INFO, SLOWLOG, MONITOR and the like
	KindTLSHandshake              // handshakes, which the server does in its event loop
)

// KindOf tells the kind of a suspect that is a command.
func (n *Node) KindOf(s account.Suspect) Kind {
	if IsMigration(s) {
		return KindMigrate // also where it slept: it waits for the other server
	}
	if s.Kind != account.KindCommand || s.Stopped && !s.Busy {
		return KindOther // the time was not the command's: the thread was kept from running
	}
	if outer, ok := n.script(s); ok {
		return outer
	}
	name, _, _ := strings.Cut(s.Command, " ")
	switch {
	case n.isTLSHandshake(s):
		return KindTLSHandshake
	case n.FrameworkOf(s) != "":
		return KindFrameworkKeys
	case forkCommands[name], s.Command == "CONFIG SET" && n.forkedWithin(s):
		return KindFork
	case s.Command == "CONFIG SET" && n.GrowthAround("evicted_keys", s) > 0:
		return KindEviction // a lower maxmemory is reached at once
	case flushCommands[name]:
		return KindFlush
	case scriptCommands[name]:
		return KindScriptOrMulti
	case name == "EXEC":
		if inner, ok := n.longestWithin(s); ok {
			return n.KindOf(inner)
		}
		return KindScriptOrMulti
	case IsMapCommand(s.Command):
		return KindMapCommand // or moved-refresh-storm: they look at these themselves
	case n.GrowsWithClients(s.Command):
		return KindClientListing
	case account.Introspection(s.Command):
		return KindIntrospection
	case n.isBulk(s):
		return KindBulkTransfer
	case s.ArgCount > MinOversizedBatch && MultiKeyCommands[name]:
		return KindManyKeys
	case s.ArgCount >= manyArguments:
		return KindSlowCommand
	case n.isFree(name, s):
		return KindFree
	case account.ConstantTime(s.Command):
		return KindOther
	}
	return KindSlowCommand
}
