package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/topology/cost"
)

// IsDataCommand reports whether a command, as commandstats names it, is none of PING, of a handshake, and of what
// slowpath and monitoring tools ask.
func IsDataCommand(name string) bool {
	base, _, _ := strings.Cut(name, "|")
	switch base {
	case "ping", "auth", "hello", "select", "readonly", "client", "command", "info", "slowlog", "latency", "config",
		"cluster", "memory", "acl", "replconf", "psync", "role":
		return false
	}
	return true
}

// IsAdminCommand reports whether a command is about the cluster, the server or the connection. Clients send such
// commands to all nodes.
func IsAdminCommand(op string) bool {
	name, _, _ := strings.Cut(op, " ")
	switch name {
	case "CLUSTER", "INFO", "PING", "HELLO", "AUTH", "CLIENT", "COMMAND", "CONFIG", "READONLY", "SELECT", "ROLE":
		return true
	}
	return false
}

// MapCommands are the commands that reply with the cluster map, as SLOWLOG and the tap name them.
var MapCommands = map[string]cost.Command{
	"CLUSTER NODES": cost.Nodes, "CLUSTER SLOTS": cost.Slots,
	"CLUSTER SHARDS": cost.Shards,
}

// IsMapCommand reports whether a command replies with the cluster map. Commandstats of a server before 7.0 say CLUSTER
// of all subcommands.
func IsMapCommand(command string) bool {
	_, ok := MapCommands[command]
	return ok || command == "CLUSTER"
}

// BlockingCommands are the commands that wait by design.
var BlockingCommands = WordSet(strings.Join(recording.BlockingCommands(), " "))

// LongWaitCommands are the commands whose reply, or next message, may take long on a healthy server.
var LongWaitCommands = WordSet(strings.Join(recording.BlockingCommands(), " ") +
	" SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR")

// IsMigration reports whether a suspect is a command that moves a value from server to server. RESTORE-ASKING is sent
// by MIGRATE alone, in a cluster; RESTORE by MIGRATE, and by programs that copy databases; those of IsSlotMigration by
// Codis.
func IsMigration(s account.Suspect) bool {
	return s.Kind == account.KindCommand && (s.Command == "MIGRATE" || s.Command == "RESTORE-ASKING" ||
		s.Command == "RESTORE" || IsSlotMigration(s.Command))
}

// IsSlotMigration reports whether a command, as SLOWLOG and the tap name it, is one by which Codis moves keys of slots
// from server to server. SLOTSMGRT-EXEC-WRAPPER is none: it does what a call of a user asks for.
func IsSlotMigration(command string) bool {
	return strings.HasPrefix(command, "SLOTSRESTORE") ||
		strings.HasPrefix(command, "SLOTSMGRT") && !strings.HasPrefix(command, "SLOTSMGRT-EXEC")
}
