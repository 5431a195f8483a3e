package recording

import (
	"slices"
	"strings"
)

// blockingCommands wait for others by design: their wait is not usual, and it is slow only of the commands that
// AwaitsAcks names. XREAD and XREADGROUP wait with the option BLOCK only. The tap tells those apart, and sees no calls
// in the messages of subscribers.
var blockingCommands = strings.Fields(
	"BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT WAITAOF")

// BlockingCommands are the commands that wait for others by design.
func BlockingCommands() []string { return slices.Clone(blockingCommands) }

// MayBlock reports whether a command waits by design: one of BlockingCommands, in any case, with what may follow it.
func MayBlock(op string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(op), " ")
	return slices.Contains(blockingCommands, name)
}

// AwaitsAcks reports whether a blocking command, in upper case, waits until replicas or the disk confirm what was
// written. Its caller waits for a result, not for work to come: it is slow where that takes long.
func AwaitsAcks(op string) bool { return op == "WAIT" || op == "WAITAOF" }

// adminCommands change the server, its cluster or its other clients, and not only data. Names and subcommands are
// compared by their first eight letters: the tap keeps no more.
var adminCommands = [...]string{
	"CONFIG SET", "CONFIG RESETSTAT", "CONFIG REWRITE", "CLIENT PAUSE", "CLIENT UNPAUSE", "CLIENT KILL",
	"CLUSTER FAILOVER", "CLUSTER SETSLOT", "CLUSTER MEET", "CLUSTER FORGET", "CLUSTER RESET", "CLUSTER REPLICATE",
	"CLUSTER ADDSLOTS", "CLUSTER DELSLOTS", "ACL SETUSER", "ACL DELUSER", "ACL LOAD", "SCRIPT FLUSH", "SCRIPT KILL",
	"MEMORY PURGE", "DEBUG", "REPLICAOF", "SLAVEOF", "FAILOVER", "FLUSHALL", "FLUSHDB", "SWAPDB", "SAVE", "BGSAVE",
	"BGREWRITEAOF",
}

// AdminCommands are the commands that change the server, its cluster or its other clients, and not only data.
func AdminCommands() []string { return slices.Clone(adminCommands[:]) }

// Administers is the whole name of the command that changes the server, its cluster or its other clients, of which the
// tap has seen op: "CONFIG RESETSTAT" of "CONFIG RESETSTA". DEBUG is named without its subcommand. False: it is none.
func Administers(op string) (command string, ok bool) {
	for _, c := range adminCommands {
		if name, sub, ok := strings.Cut(c, " "); ok && op == name+" "+sub[:min(len(sub), 8)] || op == c ||
			c == "DEBUG" && strings.HasPrefix(op, "DEBUG ") {
			return c, true
		}
	}
	return "", false
}
